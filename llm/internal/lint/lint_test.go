package lint_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/conform"
	"github.com/pawlrun/pawl/llm/internal/lint"
)

// conversation is a request whose messages were encoded as a wire has them, one
// piece for each.
type conversation struct {
	messages []*llm.Message
	segments []llm.Segment
}

// add appends a message. A call and a result say so in their neutral form; what
// else stands in the encoded one is the case's.
func (c *conversation) add(role llm.Role, encoded json.RawMessage) {
	m := &llm.Message{Role: role, Parts: llm.Parts{llm.Text{Text: string(encoded)}}}
	switch role {
	case llm.RoleTool:
		m.Parts = llm.Parts{llm.ToolResult{CallID: "c"}}
	case llm.RoleAssistant:
		m.Parts = append(m.Parts, llm.ToolCall{CallID: "c", Name: "t"})
	}
	if len(c.segments) > 0 {
		encoded = append([]byte{','}, encoded...)
	}
	c.messages, c.segments = append(c.messages, m), append(c.segments, llm.Segment{Bytes: encoded})
}

func (c *conversation) check(w conform.Wire, model string, memo *llm.Memo, n int) error {
	return lint.Request(w, "acme", "m", &llm.Request{Model: model, Messages: c.messages[:n], Memo: memo}, c.segments[:n])
}

// roleOf is a neutral role with which a piece is looked at on its own: which of
// them does not matter to a request that is new.
func roleOf(item json.RawMessage) llm.Role {
	var head struct{ Role string }
	_ = json.Unmarshal(item, &head)
	switch head.Role {
	case "assistant", "model":
		return llm.RoleAssistant
	case "tool":
		return llm.RoleTool
	}
	return llm.RoleUser
}

// ofRequests are the rules that only a whole request can break.
var ofRequests = []string{"empty", "cache-marks"}

// listed are the pieces of a case's conversation. A case that is about the rest
// of the request has none, and one that is good only because the provider keeps
// the conversation: ours carry all of it.
func listed(t *testing.T, w conform.Wire, c conform.Case) []json.RawMessage {
	t.Helper()
	member := map[conform.Wire]string{conform.Anthropic: "messages", conform.Responses: "input", conform.Chat: "messages", conform.Gemini: "contents"}[w]
	var body map[string]json.RawMessage
	if err := json.Unmarshal(c.Request, &body); err != nil {
		t.Fatal(err)
	}
	var list []json.RawMessage
	kept := w == conform.Responses && string(body["store"]) != "false" && c.Rule == "" || body["previous_response_id"] != nil
	if json.Unmarshal(body[member], &list) != nil || kept || slices.Contains(ofRequests, c.Rule) {
		return nil
	}
	return list
}

// Each rule of each wire refuses its minimal example and lets the good ones
// pass, by its name, in an error that is not tried again.
func TestEveryRuleFiresOnItsExampleAndNotOnGoodOnes(t *testing.T) {
	for _, w := range conform.Wires() {
		fired := map[string]bool{}
		for _, tt := range conform.Cases(w) {
			list := listed(t, w, tt)
			if len(list) == 0 {
				continue
			}
			var c conversation
			for _, item := range list {
				c.add(roleOf(item), item)
			}
			err := c.check(w, tt.Model, nil, len(list))
			if tt.Rule == "" {
				if err != nil {
					t.Errorf("%s: %s: refused: %v", w, tt.Name, err)
				}
				continue
			}
			e, _ := errors.AsType[*llm.Error](err)
			v, _ := errors.AsType[*conform.Violation](err)
			if e == nil || v == nil || v.Rule != tt.Rule || e.Class != llm.ClassInvalid || e.Provider != "acme" {
				t.Errorf("%s: %s: got %v, want %s", w, tt.Name, err, tt.Rule)
			}
			fired[tt.Rule] = true
		}
		for _, r := range conform.Rules(w) {
			if !fired[r.Name] && !slices.Contains(ofRequests, r.Name) {
				t.Errorf("%s: nothing was seen of %s", w, r.Name)
			}
		}
	}
}

// chatTurns is a conversation of chat completions; its call at 3 has an answer
// at 4.
func chatTurns(answered string) *conversation {
	var c conversation
	c.add(llm.RoleUser, json.RawMessage(`{"role":"user","content":"go"}`))
	for _, id := range []string{"call_1", "call_2"} {
		c.add(llm.RoleAssistant, json.RawMessage(`{"role":"assistant","tool_calls":[{"id":"`+id+`","type":"function","function":{"name":"t","arguments":"{}"}}]}`))
		if id == "call_2" {
			id = answered
		}
		c.add(llm.RoleTool, json.RawMessage(`{"role":"tool","tool_call_id":"`+id+`","content":"ok"}`))
	}
	return &c
}

// What was found to be in order is not read again, and what follows on it is
// held to all that it must know of it.
func TestOnlyWhatIsNewIsRead(t *testing.T) {
	for _, tt := range []struct {
		name, answered, rule string
	}{
		{name: "a good end", answered: "call_2"},
		{name: "a result of a call of before", answered: "call_1", rule: "orphan-result"},
		{name: "a result of no call", answered: "call_9", rule: "orphan-result"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, memo := chatTurns(tt.answered), new(llm.Memo)
			if err := c.check(conform.Chat, "m", memo, 3); err != nil {
				t.Fatal(err)
			}
			seen := slices.Clone(c.segments)
			for i := range seen[:3] {
				c.segments[i].Bytes = []byte(`,{"role":"nobody"}`) // would be refused if it were read
			}
			err := c.check(conform.Chat, "m", memo, 5)
			v, _ := errors.AsType[*conform.Violation](err)
			if tt.rule == "" && err != nil || tt.rule != "" && (v == nil || v.Rule != tt.rule) {
				t.Errorf("got %v, want %q", err, tt.rule)
			}
			if err := c.check(conform.Chat, "m", nil, 5); err == nil {
				t.Error("without a memo the beginning is not read")
			}
		})
	}
}

func TestARequestWithoutMessagesIsOnlyAskedAbout(t *testing.T) {
	if err := lint.Request(conform.Anthropic, "acme", "m", &llm.Request{}, nil); err != nil {
		t.Error(err)
	}
}
