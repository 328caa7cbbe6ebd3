package wiregate

import (
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/history"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// target is a model to which a run may be switched.
type target struct {
	name, model string
	llm.Encoder
}

func targets() []target {
	return []target{
		{"anthropic", "claude-sonnet-4-5", anthropic.New(anthropic.Options{})},
		{"openai", "gpt-5", openai.New(openai.Options{})},
		{"openai-chat", "gpt-5", openaichat.New(openaichat.Options{})},
		{"google", "gemini-3-pro-preview", gemini.New(gemini.Options{})},
	}
}

// SwitchGate takes every recorded answer into a history, with results of its
// calls and another question, and sends it to its own provider and to a model of
// each wire: whatever an answer held, the request that follows keeps the rules
// of the wire that it goes to.
func SwitchGate(t *testing.T, a Adapter) {
	r := report{name: "switch/" + a.API}
	for _, s := range Load(t, a.API) {
		a := a.of(&s)
		var conversations [][]*llm.Message
		for i := range s.Exchanges {
			// No history holds an answer that is an error.
			if resp, err := read(t, a, &s, &s.Exchanges[i], Whole, true); err == nil && resp != nil {
				conversations = append(conversations, carriedOn(t, resp, a.origin(s.Model), i))
			}
		}
		if len(conversations) == 0 {
			continue
		}
		own := target{"its own", s.Model, a.New("http://unused.invalid", nil)}
		r.run(t, s.ID, func(t *testing.T) string {
			for i, messages := range conversations {
				for _, to := range append(targets(), own) {
					if _, err := to.Encode(&llm.Request{Model: to.model, Messages: messages}); err != nil {
						t.Errorf("answer %d, to %s: %v", i+1, to.name, err)
					}
				}
			}
			return ""
		})
	}
	r.finish(t)
}

// carriedOn is the conversation behind an answer.
func carriedOn(t *testing.T, resp *llm.Response, origin string, turn int) []*llm.Message {
	t.Helper()
	var h history.History
	h.User("go")
	var fed []llm.ToolResult
	for i, c := range resp.Parts.ToolCalls() {
		fed = append(fed, llm.ToolResult{ProviderID: c.ProviderID, Output: fmt.Sprint("result ", i+1)})
	}
	if err := answer(&h, resp, origin, turn, fed); err != nil {
		t.Fatal(err)
	}
	h.User("and now?")
	messages, err := h.Messages()
	if err != nil {
		t.Fatal(err)
	}
	return messages
}
