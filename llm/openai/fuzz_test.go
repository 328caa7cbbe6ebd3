package openai_test

import (
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl/internal/wiregate"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openai"
)

// FuzzAnswer reads any bytes as an answer: no panic, deltas that are never
// empty, arguments that are JSON, and a response that goes back as a request.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(sse(created, textAdded, textDelta("one "), textDelta("two"), textDone, callAdded("1"), argsDelta("1", "{}"), callDone("1", `"{}"`), completed)))
	f.Add([]byte(`{"status":"completed","output":[{"type":"reasoning","summary":[{"text":"a"}]},{"type":"message","content":[{"text":"b"}]}]}`))
	f.Add([]byte(sse(`{"type":"error","error":{"code":"x"}}`)))
	if _, ok := wiregate.Fixtures(); ok {
		for _, s := range wiregate.Load(f, "openai-responses") {
			for _, x := range s.Exchanges {
				if len(x.Body) < 32<<10 {
					f.Add(x.Body)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s := &service{body: string(body)}
		m := s.model(openai.Options{})
		resp, err := m.Stream(t.Context(), question(), func(d llm.Delta) {
			if d.Text == "" {
				t.Fatalf("an empty delta: %+v", d)
			}
		})
		if resp == nil {
			t.Fatalf("nothing is kept, error %v", err)
		}
		for _, c := range resp.Parts.ToolCalls() {
			if len(c.Args) > 0 && !json.Valid(c.Args) {
				t.Fatalf("arguments that are no JSON: %s", c.Args)
			}
		}
		encoded(t, &llm.Request{Model: "gpt-5", Messages: []*llm.Message{{Role: llm.RoleAssistant, Origin: own, Parts: resp.Parts}}})
	})
}
