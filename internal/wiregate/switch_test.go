package wiregate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/rules/history"
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
		echoing("deepseek"), echoing("openrouter"),
	}
}

// echoing is a compatible service that wants its own thoughts back.
func echoing(profile string) target {
	p, _ := openaichat.ProfileNamed(profile)
	return target{profile, "another-model", openaichat.New(openaichat.Options{Profile: &p, Provider: profile})}
}

// switchGate takes every recorded answer into a history, with results of its
// calls and another question, and sends it to its own provider and to a model of
// each wire: whatever an answer held, the request that follows keeps the rules
// of the wire that it goes to, and only the model that had a thought is sent it.
func switchGate(t *testing.T, a Adapter) {
	r := report{name: "switch/" + a.API}
	for _, s := range load(t, a.API) {
		a := a.of(&s)
		var conversations [][]*llm.Message
		for i := range s.Exchanges {
			// No history holds an answer that is an error.
			if resp, err := read(t, a, &s, &s.Exchanges[i], Unsplit, true); err == nil && resp != nil {
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
					enc, err := to.Encode(&llm.Request{Model: to.model, Messages: messages})
					if err != nil {
						t.Errorf("answer %d, to %s: %v", i+1, to.name, err)
						continue
					}
					if to.name == own.name || to.name == a.Provider && strings.HasPrefix(s.Model, to.model) {
						continue // the same model, if under the name of a snapshot
					}
					if thought := foreignThought(t, bytes.Join(enc.Segments, nil), messages); thought != "" {
						t.Errorf("answer %d, to %s: another model's thought is sent: %.100q", i+1, to.name, thought)
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

// foreignThought is a thought of the messages, or its signature, that stands in
// the body as a text of its own; "" means none does.
func foreignThought(t *testing.T, body []byte, messages []*llm.Message) string {
	t.Helper()
	thoughts := map[string]bool{}
	for _, m := range messages {
		for _, p := range m.Parts {
			if r, ok := p.(llm.Reasoning); ok {
				thoughts[r.Text], thoughts[r.Signature] = true, true
				eachText(t, r.Raw, func(text string) {
					if len(text) >= sealedSize {
						thoughts[text] = true
					}
				})
			}
		}
	}
	delete(thoughts, "")
	found := ""
	eachText(t, body, func(text string) {
		if thoughts[text] {
			found = text
		}
	})
	return found
}

// sealedSize tells what a provider sealed from the words of its format.
const sealedSize = 64

// eachText calls f with every string value of a JSON document.
func eachText(t *testing.T, document []byte, f func(string)) {
	t.Helper()
	if len(document) == 0 {
		return
	}
	var v any
	if err := json.Unmarshal(document, &v); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			f(v)
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(v)
}
