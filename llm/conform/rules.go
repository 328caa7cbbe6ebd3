package conform

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
)

// Rule is a provider's requirement on a conversation.
type Rule struct {
	Name string `json:"name"`
	// Says is the rule as a sentence.
	Says string `json:"says"`
	// Source is the evidence for the rule: a page of the provider, or the text of its
	// error.
	Source string `json:"source"`
}

// Case is an example of a request that is accepted or refused.
type Case struct {
	Name string `json:"name"`
	// Rule is the rule that the request violates, "" for an accepted request.
	Rule string `json:"rule,omitempty"`
	// Model is the model, if the wire does not name it in the request.
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
		// The files are embedded, and a test reads them all.
		return table{Rules: []Rule{{Name: "broken", Says: fmt.Sprint(err)}}}
	}
	return t
}

// Rules lists the rules of a wire.
func Rules(w Wire) []Rule { return tableOf(w).Rules }

// Cases lists examples of every rule of a wire, accepted and refused, for testing a
// linter or a loop that makes requests.
func Cases(w Wire) []Case { return tableOf(w).Cases }
