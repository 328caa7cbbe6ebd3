package anthropic_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/wiregate"
	"github.com/pawlrun/pawl/llm"
)

// FuzzAnswer reads arbitrary bytes as an answer. Whatever they are, there is an
// answer or a classified error, what was shown is what is kept, and no call
// holds arguments that are not JSON.
func FuzzAnswer(f *testing.F) {
	f.Add(transcript(3))
	f.Add([]byte(`{"type":"message","content":[{"type":"tool_use","id":"toolu_1","name":"a","input":{}}],"stop_reason":"tool_use"}`))
	f.Add([]byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
	f.Add([]byte(toolStream(`{\"path\":\"a`, true)))
	f.Add([]byte(toolStream(`{\"path\":`, false)))
	if root, ok := wiregate.Fixtures(); ok {
		paths, _ := filepath.Glob(filepath.Join(root, "wire-derived", "anthropic-*", "response.*"))
		for _, path := range paths {
			if body, err := os.ReadFile(path); err == nil {
				f.Add(body)
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		shown := map[int]*strings.Builder{}
		resp, err := modelOf(body).Stream(t.Context(), ask(), func(d llm.Delta) {
			if d.Text == "" {
				t.Fatal("an empty delta")
			}
			if shown[d.Index] == nil {
				shown[d.Index] = &strings.Builder{}
			}
			shown[d.Index].WriteString(d.Text)
		})
		if _, classified := errors.AsType[*llm.Error](err); err != nil && !classified {
			t.Fatalf("error without a class: %v", err)
		}
		if resp == nil && (err == nil || len(shown) > 0) {
			t.Fatal("what came before the error is lost")
		}
		if resp == nil {
			return
		}
		for i, p := range resp.Parts {
			switch p := p.(type) {
			case llm.Text:
				if shown[i] == nil || shown[i].String() != p.Text {
					t.Fatalf("part %d was not shown as it is kept", i)
				}
			case llm.ToolCall:
				checkCall(t, p, err)
			}
		}
	})
}

func checkCall(t *testing.T, c llm.ToolCall, err error) {
	t.Helper()
	switch {
	case len(c.Args) > 0 && !json.Valid(c.Args):
		t.Fatalf("arguments that are no JSON: %s", c.Args)
	case len(c.Args) > 0 == (c.ArgsText != ""):
		t.Fatalf("a call needs arguments or their fragment: %+v", c)
	case err != nil && c.ArgsText != "" && json.Valid([]byte(c.ArgsText)):
		t.Fatalf("whole arguments kept as a fragment: %s", c.ArgsText)
	}
}

// toolStream is a stream of one call whose arguments come in one piece, with or
// without the end of the block and the message.
func toolStream(args string, ended bool) string {
	s := "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"c\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n" +
		"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"fs_read\",\"input\":{}}}\n\n"
	if args != "" {
		s += "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"" + args + "\"}}\n\n"
	}
	if ended {
		s += "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n" + messageEnd("tool_use", 20)
	}
	return s
}
