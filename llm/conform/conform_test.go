package conform_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/llm/conform"
)

func TestEveryRuleHasExamplesThatAreTakenAndRefused(t *testing.T) {
	for _, w := range conform.Wires() {
		shown := map[string]bool{}
		taken := 0
		for _, c := range conform.Cases(w) {
			t.Run(string(w)+"/"+c.Name, func(t *testing.T) {
				err := conform.Lint(w, c.Request, conform.Options{Model: c.Model})
				v, _ := errors.AsType[*conform.Violation](err)
				switch {
				case c.Rule == "" && err != nil:
					t.Errorf("refused: %v", err)
				case c.Rule != "" && (v == nil || v.Rule != c.Rule || v.Wire != w):
					t.Errorf("got %v, want %s", err, c.Rule)
				}
			})
			shown[c.Rule] = true
			if c.Rule == "" {
				taken++
			}
		}
		for _, r := range conform.Rules(w) {
			if !shown[r.Name] || r.Says == "" || r.Source == "" {
				t.Errorf("%s: the rule %s has no example, or does not say what it is and where it is from", w, r.Name)
			}
		}
		if taken < 5 {
			t.Errorf("%s: only %d examples are taken", w, taken)
		}
	}
}

// Pieces that were read one by one are the conversation that they are together:
// what an adapter relies on that reads every message once.
func TestPiecesAreTheWhole(t *testing.T) {
	member := map[conform.Wire]string{"anthropic": "messages", "openai": "input", "openai-chat": "messages", "google": "contents"}
	for _, w := range conform.Wires() {
		for _, c := range conform.Cases(w) {
			var body map[string]json.RawMessage
			if err := json.Unmarshal(c.Request, &body); err != nil {
				t.Fatal(err)
			}
			var list []json.RawMessage
			if err := json.Unmarshal(body[member[w]], &list); err != nil || c.Rule == "cache-marks" {
				continue
			}
			o := conform.Options{Model: c.Model, Chained: body["previous_response_id"] != nil, Stored: w == conform.Responses && string(body["store"]) != "false"}
			var pieces []conform.Items
			for i, item := range list {
				if i > 0 {
					item = append([]byte(","), item...)
				}
				pieces = append(pieces, conform.Read(w, item))
			}
			whole, parts := conform.Lint(w, c.Request, o), conform.Check(w, o, pieces...)
			if fmt.Sprint(whole) != fmt.Sprint(parts) {
				t.Errorf("%s: %s: whole %v, in pieces %v", w, c.Name, whole, parts)
			}
		}
	}
}

func TestARequestWithoutAConversationIsNone(t *testing.T) {
	for _, request := range []string{``, `[]`, `{"model":"m"}`, `{"messages":[{"role":"user","content":"a"}`} {
		if err := conform.Lint(conform.Anthropic, []byte(request), conform.Options{}); err == nil {
			t.Errorf("%q is taken", request)
		}
	}
	if err := conform.Lint("fax", []byte(`{}`), conform.Options{}); err == nil {
		t.Error("there is a wire fax")
	}
}

func FuzzLint(f *testing.F) {
	for i, w := range conform.Wires() {
		for _, c := range conform.Cases(w) {
			f.Add(i, []byte(c.Request), c.Model)
		}
	}
	f.Fuzz(func(t *testing.T, wire int, request []byte, model string) {
		w := conform.Wires()[uint(wire)%4]
		err := conform.Lint(w, request, conform.Options{Model: model})
		v, ok := errors.AsType[*conform.Violation](err)
		if !ok {
			return
		}
		if !slices.ContainsFunc(conform.Rules(w), func(r conform.Rule) bool { return r.Name == v.Rule }) {
			t.Errorf("%s has no rule %s", w, v.Rule)
		}
	})
}

// A program that keeps its own history of a provider's messages holds it to the
// provider's rules before it sends it.
func ExampleLint() {
	request := []byte(`{"model":"claude-sonnet-4-5","max_tokens":1000,"messages":[
		{"role":"user","content":"What is the weather in Bergen?"},
		{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Bergen"}}]},
		{"role":"user","content":"And in Oslo?"}]}`)
	err := conform.Lint(conform.Anthropic, request, conform.Options{})
	if v, ok := errors.AsType[*conform.Violation](err); ok {
		fmt.Println(v.Rule, "in message", v.Item)
	}
	fmt.Println(err)
	// Output:
	// orphan-call in message 1
	// conform: anthropic: item 1 breaks orphan-call: a call has no result in the next message (call toolu_1)
}

// What a loop says with the system's authority in mid-conversation has a role of
// its own with OpenAI. Gemini has none: there the note belongs to the system
// text, beside the conversation.
func ExampleLint_systemNotes() {
	chat := []byte(`{"model":"gpt-5","messages":[
		{"role":"system","content":"Be brief."},
		{"role":"user","content":"Read both files."},
		{"role":"system","content":"Earlier, a third file was read."}]}`)
	fmt.Println(conform.Lint(conform.Chat, chat, conform.Options{}))

	responses := []byte(`{"model":"gpt-5","instructions":"Be brief.","input":[
		{"role":"user","content":"Read both files."},
		{"role":"developer","content":"Earlier, a third file was read."}]}`)
	fmt.Println(conform.Lint(conform.Responses, responses, conform.Options{}))

	among := []byte(`{"contents":[
		{"role":"user","parts":[{"text":"Read both files."}]},
		{"role":"system","parts":[{"text":"Earlier, a third file was read."}]}]}`)
	err := conform.Lint(conform.Gemini, among, conform.Options{Model: "gemini-2.5-pro"})
	if v, ok := errors.AsType[*conform.Violation](err); ok {
		fmt.Println(v.Rule, "in content", v.Item)
	}

	beside := []byte(`{"systemInstruction":{"parts":[{"text":"Be brief."},{"text":"Earlier, a third file was read."}]},
		"contents":[{"role":"user","parts":[{"text":"Read both files."}]}]}`)
	fmt.Println(conform.Lint(conform.Gemini, beside, conform.Options{Model: "gemini-2.5-pro"}))
	// Output:
	// <nil>
	// <nil>
	// role in content 1
	// <nil>
}
