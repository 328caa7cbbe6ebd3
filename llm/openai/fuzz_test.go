package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/internal/wiregate"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/conform"
	"github.com/pawlrun/pawl/llm/openai"
)

// FuzzAnswer reads any bytes as an answer: no panic, deltas that are never
// empty, arguments that are JSON, and a response that goes back as a request.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(sse(created, textAdded, textDelta("one "), textDelta("two"), textDone, callAdded("1"), argsDelta("1", "{}"), callDone("1", `"{}"`), completed)))
	f.Add([]byte(`{"status":"completed","output":[{"type":"reasoning","summary":[{"text":"a"}]},{"type":"message","content":[{"text":"b"}]}]}`))
	f.Add([]byte(sse(`{"type":"error","error":{"code":"x"}}`)))
	if root, ok := wiregate.Fixtures(); ok {
		paths, _ := filepath.Glob(filepath.Join(root, "wire*", "responses-*", "response.*"))
		more, _ := filepath.Glob(filepath.Join(root, "wire*", "responses-*", "*", "response.*"))
		for _, path := range append(paths, more...) {
			if body, err := os.ReadFile(path); err == nil && len(body) < 32<<10 {
				f.Add(body)
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s := &service{body: string(body)}
		m := s.model(openai.Options{})
		shown := 0
		resp, err := m.Stream(t.Context(), question(), func(d llm.Delta) {
			if shown++; d.Text == "" {
				t.Fatalf("an empty delta: %+v", d)
			}
		})
		if resp == nil && (err == nil || shown > 0) {
			t.Fatalf("nothing is kept, error %v", err)
		}
		if resp == nil {
			return
		}
		for _, c := range resp.Parts.ToolCalls() {
			if len(c.Args) > 0 && !json.Valid(c.Args) {
				t.Fatalf("arguments that are no JSON: %s", c.Args)
			}
		}
		goesBack(t, resp)
	})
}

// goesBack sends an answer back, as history would, with a result for each of
// its calls. A request that is refused names the rule that it breaks.
func goesBack(t *testing.T, resp *llm.Response) {
	t.Helper()
	results := &llm.Message{Role: llm.RoleTool}
	for i, p := range resp.Parts {
		if c, ok := p.(llm.ToolCall); ok {
			c.CallID = fmt.Sprintf("run-1-%d", len(results.Parts)+1)
			resp.Parts[i] = c
			results.Parts = append(results.Parts, llm.ToolResult{CallID: c.CallID, ProviderID: c.ProviderID, Name: c.Name})
		}
	}
	messages := []*llm.Message{llm.UserText("hi"), assistant(own, resp.Parts...)}
	if len(results.Parts) > 0 {
		messages = append(messages, results)
	}
	enc, err := openai.New(openai.Options{}).Encode(&llm.Request{Model: "gpt-5", Messages: messages})
	if _, named := errors.AsType[*conform.Violation](err); err != nil && !named {
		t.Fatal(err)
	}
	if err == nil && !json.Valid(bytes.Join(enc.Segments, nil)) {
		t.Fatalf("no JSON: %s", bytes.Join(enc.Segments, nil))
	}
}
