package conform

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
)

// Rule is something that a provider demands of a conversation.
type Rule struct {
	Name string `json:"name"`
	// Says is the rule in a sentence.
	Says string `json:"says"`
	// Source is where it is known from: a page of the provider's, or the words
	// of its refusal.
	Source string `json:"source"`
}

// Case is an example of a request that is taken, or refused.
type Case struct {
	Name string `json:"name"`
	// Rule is the rule that the request breaks, "" for a request that is
	// taken.
	Rule string `json:"rule,omitempty"`
	// Model is the model of a wire that has it elsewhere than in the request.
	Model   string          `json:"model,omitempty"`
	Request json.RawMessage `json:"request"`
}

//go:embed testdata/*.json
var files embed.FS

type table struct {
	Rules []Rule `json:"rules"`
	Cases []Case `json:"cases"`
}

func tableOf(w Wire) table {
	var t table
	if !slices.Contains(Wires(), w) {
		return t
	}
	data, err := files.ReadFile("testdata/" + string(w) + ".json")
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		// The files are part of the program, and a test reads them all.
		return table{Rules: []Rule{{Name: "broken", Says: fmt.Sprint(err)}}}
	}
	return t
}

// Rules lists the rules of a wire.
func Rules(w Wire) []Rule { return tableOf(w).Rules }

// Cases lists examples for every rule of a wire, taken and refused: what a
// linter, or a loop that makes requests, can be tested with.
func Cases(w Wire) []Case { return tableOf(w).Cases }
