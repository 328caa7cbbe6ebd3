package cli

import (
	"net/http"
	"strings"
	"testing"
)

// A run that falls back on another provider in the middle of its work continues there:
// calls and results are sent in that provider's form, and the first one's reasoning
// stays behind, whole.
func TestARunSwitchesItsProviderInTheMiddle(t *testing.T) {
	thinking := reply{raw: `{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"a private thought","signature":"sealed=="},` +
		`{"type":"tool_use","id":"toolu_1","name":"fs_read","input":{"path":"note.md"}}],"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":2}}`}
	for _, form := range wireForms[1:] {
		t.Run(strings.ReplaceAll(form.model, "/", " "), func(t *testing.T) {
			upstream := newProvider(t, thinking, reply{refused: http.StatusServiceUnavailable}, reply{text: "It says: a note."})
			p := newProject(t, map[string]string{
				"config.yaml": upstream.config(), "note.md": "a note",
				"agent.yaml": readsAgent + "model_policy: {primary: anthropic/claude-sonnet-4-5, fallbacks: [" + form.model + "]}\n",
			})
			f := p.calls(testKey, "run", "agent.yaml", "look", "--config", "config.yaml", "--no-budget")
			if f.code != 0 || f.out != "It says: a note.\n" {
				t.Fatalf("exit code %d, stdout %q: %s", f.code, f.out, f.err)
			}
			requests := upstream.asked()
			if len(requests) != 3 || requests[1].path != "/v1/messages" || requests[2].path != form.streamed {
				t.Fatalf("%d requests, the last to %s", len(requests), requests[len(requests)-1].path)
			}
			if first := requests[1].body; !strings.Contains(first, "a private thought") || !strings.Contains(first, "sealed==") {
				t.Errorf("the first provider does not get its own thought back: %s", first)
			}
			for _, w := range []place{form.system, form.tool, form.call, form.result} {
				if got := w.at(t, requests[2].body); got != w.want {
					t.Errorf("the other provider gets %q at %s, want %q", got, w.path, w.want)
				}
			}
			if strings.Contains(requests[2].body, "private thought") || strings.Contains(requests[2].body, "sealed==") {
				t.Errorf("the other provider gets a foreign thought: %s", requests[2].body)
			}
		})
	}
}
