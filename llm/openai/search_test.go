package openai_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openai"
)

// catalogue is a set of tools that can be searched.
func catalogue() []llm.ToolDef {
	return []llm.ToolDef{
		{Name: "clock.now", Description: "the time", Schema: raw(`{"type":"object","properties":{}}`), Deferred: true},
		{Name: "look", Schema: raw(`{"type":"object","properties":{}}`)},
		{Name: "tools.find", Description: "finds tools", Schema: raw(`{"type":"object","properties":{"q":{"type":"string"}}}`), Search: true},
	}
}

// searched is a conversation in which a model searched for a tool.
func searched(origin string, result llm.ToolResult) []*llm.Message {
	call := llm.ToolCall{
		CallID: "run-1", ProviderID: "call_a1b2c3d4e5", Name: "tools.find", Args: raw(`{"q": "time"}`), Raw: raw(`{"id":"tsc_1","type":"tool_search_call"}`),
	}
	result.CallID, result.ProviderID, result.Name = call.CallID, call.ProviderID, call.Name
	return []*llm.Message{assistant(origin, call), {Role: llm.RoleTool, Parts: llm.Parts{result}}}
}

const (
	ordinaryClock = `{"type":"function","name":"clock_now","description":"the time","parameters":{"type":"object","properties":{}},"strict":false}`
	deferredClock = `{"type":"function","name":"clock_now","description":"the time","parameters":{"type":"object","properties":{}},"strict":false,"defer_loading":true}`
	ordinaryLook  = `{"type":"function","name":"look","parameters":{"type":"object","properties":{}},"strict":false}`
	findSchema    = `"description":"finds tools","parameters":{"type":"object","properties":{"q":{"type":"string"}}}`
)

func TestToolsAreHeldBackWhereTheModelCanSearchForThem(t *testing.T) {
	for name, c := range map[string]struct {
		model string
		tools []llm.ToolDef
		want  string
	}{
		"a model that searches": {
			"gpt-5.4-mini", catalogue(),
			`[` + deferredClock + `,` + ordinaryLook + `,{"type":"tool_search","execution":"client",` + findSchema + `}]`,
		},
		"a model that does not": {
			"gpt-5.2", catalogue(),
			`[` + ordinaryClock + `,` + ordinaryLook + `,{"type":"function","name":"tools_find",` + findSchema + `,"strict":false}]`,
		},
		"no tool to search with": {"gpt-5.4", catalogue()[:2], `[` + ordinaryClock + `,` + ordinaryLook + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			wantJSON(t, "tools", encoded(t, &llm.Request{Model: c.model, Tools: c.tools, Messages: []*llm.Message{llm.UserText("hi")}})["tools"], c.want)
		})
	}
}

func TestWhatASearchFoundGoesBackInTheWayThatTheTargetKnows(t *testing.T) {
	const asFunction = `{"type":"function_call","call_id":"call_a1b2c3d4e5","name":"tools_find","arguments":"{\"q\":\"time\"}"},` +
		`{"type":"function_call_output","call_id":"call_a1b2c3d4e5","output":"found clock.now"}`
	found := llm.ToolResult{Output: "found clock.now", Tools: []string{"clock.now", "look", "gone"}}
	failed := found
	failed.IsError = true
	for name, c := range map[string]struct {
		model, origin string
		result        llm.ToolResult
		want          string
	}{
		"the model that searched": {"gpt-5.4", "openai/gpt-5.4", found, `
			{"type":"tool_search_call","execution":"client","status":"completed","call_id":"call_a1b2c3d4e5","arguments":{"q":"time"}},
			{"type":"tool_search_output","execution":"client","status":"completed","call_id":"call_a1b2c3d4e5","tools":[` + deferredClock + `]}`},
		"nothing found": {"gpt-5.4", "openai/gpt-5.4", llm.ToolResult{Output: "no such tool"}, `
			{"type":"tool_search_call","execution":"client","status":"completed","call_id":"call_a1b2c3d4e5","arguments":{"q":"time"}},
			{"type":"tool_search_output","execution":"client","status":"completed","call_id":"call_a1b2c3d4e5","tools":[]}`},
		"a search that failed, which only words can tell": {"gpt-5.4", "openai/gpt-5.4", failed, asFunction},
		"another model":              {"gpt-5.4", "anthropic/claude", found, asFunction},
		"a model that cannot search": {"gpt-5.2", "openai/gpt-5.2", found, asFunction},
	} {
		t.Run(name, func(t *testing.T) {
			body := encoded(t, &llm.Request{Model: c.model, Tools: catalogue(), Messages: searched(c.origin, c.result)})
			wantJSON(t, "input", body["input"], `[`+c.want+`]`)
		})
	}
}

func TestASearchThatTheClientIsAskedForIsACall(t *testing.T) {
	const item = `{"type":"tool_search_call","id":"tsc_1","execution":"client","call_id":"call_a1b2c3d4e5","status":"completed","arguments":{"q":"time"}}`
	answer := sse(created, `{"type":"response.output_item.added","output_index":0,"item":{"type":"tool_search_call","id":"tsc_1","execution":"client","call_id":"call_a1b2c3d4e5","arguments":{}}}`,
		`{"type":"response.output_item.done","output_index":0,"item":`+item+`}`, `{"type":"response.completed","response":{"status":"completed","output":[`+item+`]}}`)
	for name, c := range map[string]struct {
		tools []llm.ToolDef
		want  string
	}{
		"of the tool that searches":                  {catalogue(), "tools.find"},
		"of none, which the loop tells the model so": {nil, "tool_search"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{body: answer}
			var deltas []llm.Delta
			resp, err := s.model(openai.Options{}).Stream(t.Context(), &llm.Request{Model: "gpt-5.4", Tools: c.tools}, func(d llm.Delta) { deltas = append(deltas, d) })
			if err != nil {
				t.Fatal(err)
			}
			want := llm.Parts{llm.ToolCall{
				ProviderID: "call_a1b2c3d4e5", Name: c.want, Args: raw(`{"q":"time"}`), Raw: raw(`{"id":"tsc_1","type":"tool_search_call"}`),
			}}
			if diff := cmp.Diff(want, resp.Parts); diff != "" || resp.Finish != llm.FinishTool {
				t.Errorf("finish %s, parts (-want +got):\n%s", resp.Finish, diff)
			}
			if diff := cmp.Diff([]llm.Delta{{Kind: llm.DeltaToolCall, Tool: c.want, Text: `{"q":"time"}`}}, deltas); diff != "" {
				t.Errorf("deltas (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASearchThatTheServiceMadeIsShownAndSentBack(t *testing.T) {
	const item = `{"type":"tool_search_call","id":"tsc_1","execution":"server","call_id":null,"status":"completed","arguments":{}}`
	s := &service{body: `{"status":"completed","output":[` + item + `]}`}
	resp, err := s.model(openai.Options{}).Generate(t.Context(), question())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(llm.Parts{llm.Item{Type: "tool_search_call", Raw: raw(item)}}, resp.Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}
