package cli

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/llm"
)

// The items are as the providers send them.
func TestWhatAProviderRanOnItsSideIsShown(t *testing.T) {
	item := func(kind, raw string) llm.Item { return llm.Item{Type: kind, Raw: json.RawMessage(raw)} }
	notes := progress(event.Event{Data: event.ModelResponse{Parts: event.Answer{
		item("server_tool_use", `{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"otters"}}`),
		item("web_search_tool_result", `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`),
		item("web_search_call", `{"type":"web_search_call","id":"w","status":"completed","action":{"type":"search","query":"otters"}}`),
		item("code_interpreter_call", `{"type":"code_interpreter_call","id":"c","code":"print(1)\nprint(2)"}`),
		item("mcp_list_tools", `{"type":"mcp_list_tools","tools":[]}`),
		item("mcp_call", `{"type":"mcp_call","name":"ask","arguments":"{\"q\":1}"}`),
		item("executableCode", `{"executableCode":{"language":"PYTHON","code":"1+1"}}`),
		item("codeExecutionResult", `{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}`),
		llm.Text{Text: "Otters swim."},
	}}}, &nextStep{view: new(view.View)})
	var lines []string
	for _, n := range notes {
		lines = append(lines, n.text)
	}
	want := []string{
		`  ⇢ web_search {"query":"otters"} (run by the provider)`,
		`  ⇢ web_search {"type":"search","query":"otters"} (run by the provider)`,
		"  ⇢ code_interpreter print(1) (run by the provider)",
		`  ⇢ ask {"q":1} (run by the provider)`,
		`  ⇢ executableCode {"language":"PYTHON","code":"1+1"} (run by the provider)`,
		"  Otters swim.",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}
