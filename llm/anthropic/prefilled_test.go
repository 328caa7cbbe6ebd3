package anthropic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
)

// What code of the model's calls comes whole in the head of an answer.
const codeCalls = `{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"code_execution_result","stdout":"1","return_code":0}},` +
	`{"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"a"},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_2"}}`

func headWith(content, end, usage string) string {
	return `data: {"type":"message_start","message":{"id":"m","model":"c","content":[` + content + `],` + end + `"usage":` + usage + `}}` + "\n\n"
}

const stopped = "data: {\"type\":\"message_stop\"}\n\n"

func TestACallThatComesWholeInTheHeadIsACall(t *testing.T) {
	const end = `"stop_reason":"tool_use",`
	for name, c := range map[string]struct {
		body  string
		usage llm.Usage
		text  string
	}{
		"and nothing else":            {headWith(codeCalls, end, `{"input_tokens":0,"output_tokens":0}`) + stopped, llm.Usage{}, ""},
		"with what it cost":           {headWith(codeCalls, end, `{"input_tokens":9,"cache_read_input_tokens":100,"output_tokens":7}`) + stopped, llm.Usage{Input: 109, CacheRead: 100, Output: 7}, ""},
		"with an end of its own":      {headWith(codeCalls, "", `{"input_tokens":9,"output_tokens":1}`) + messageEnd("tool_use", 7), llm.Usage{Input: 9, Output: 7}, ""},
		"and the stream goes on":      {headWith(codeCalls, "", `{"input_tokens":9,"output_tokens":1}`) + textBlock(2, "so") + messageEnd("tool_use", 7), llm.Usage{Input: 9, Output: 7}, "so"},
		"in a head that comes twice":  {headWith(codeCalls, end, `{"input_tokens":9,"output_tokens":7}`) + headWith(codeCalls, end, `{"input_tokens":9,"output_tokens":7}`) + stopped, llm.Usage{Input: 9, Output: 7}, ""},
		"as an answer that is whole":  {`{"type":"message","id":"m","model":"c","content":[` + codeCalls + `],` + end + `"usage":{"input_tokens":9,"output_tokens":7}}`, llm.Usage{Input: 9, Output: 7}, ""},
		"behind a ping, as any event": {"data: {\"type\":\"ping\"}\n\n" + headWith(codeCalls, end, `{"input_tokens":9,"output_tokens":7}`) + stopped, llm.Usage{Input: 9, Output: 7}, ""},
	} {
		var shown string
		resp, err := modelOf([]byte(c.body)).Stream(t.Context(), ask(), func(d llm.Delta) {
			if d.Kind == llm.DeltaToolCall {
				shown += d.Tool + d.Text
			}
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		calls := resp.Parts.ToolCalls()
		if len(calls) != 1 || calls[0].Name != "read" || calls[0].ProviderID != "toolu_1" || string(calls[0].Args) != `{"path":"a"}` || len(calls[0].Raw) == 0 {
			t.Errorf("%s: calls %+v", name, calls)
			continue
		}
		if resp.Finish != llm.FinishTool || resp.Parts.Text() != c.text || shown != `read{"path":"a"}` {
			t.Errorf("%s: finish %q, text %q, shown %s", name, resp.Finish, resp.Parts.Text(), shown)
		}
		if d := cmp.Diff(c.usage, resp.Usage); d != "" {
			t.Errorf("%s: usage (-want +got)\n%s", name, d)
		}
		if item, ok := resp.Parts[0].(llm.Item); !ok || item.Type != "code_execution_tool_result" {
			t.Errorf("%s: what stands before the call is lost: %v", name, resp.Parts)
		}
	}
}

// Some gateways put the place of the first block into the head.
func TestAHeadWhoseContentIsStreamedHoldsNone(t *testing.T) {
	body := headWith(`{"type":"text","text":"h"}`, "", `{"input_tokens":9,"output_tokens":1}`) + textBlock(0, "hi") + messageEnd("end_turn", 7)
	resp, err := stream(t, body, ask())
	if err != nil || resp.Parts.Text() != "hi" {
		t.Errorf("read as %+v, %v", resp, err)
	}
}
