package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// rows: HAR-7, HAR-8, HAR-37, HAR-61, ALF-68
func TestAResultCanBeTracedToItsCallItsCycleAndItsRun(t *testing.T) {
	var got []tool.Call
	note := tool.Tool{
		Name: "note", Schema: json.RawMessage(`{"type":"object"}`),
		Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			got = append(got, c)
			return tool.Result{Output: "noted " + string(c.Args)}, nil
		},
	}
	r := newRig(t).tools(note).turns(
		scripted.Turn{ToolCalls: calls("note", `{"n":1}`)},
		scripted.Turn{ToolCalls: calls("note", `{"n":2}`, "note", `{"n":3}`)},
		scripted.Turn{Text: "done"},
	)
	run := r.start(t.Context())
	events := drain(t, run, false)

	requested, keys := map[string]event.ToolCall{}, map[string]string{}
	var settled []string
	for _, e := range events {
		switch d := e.Data.(type) {
		case event.ToolCall:
			requested[d.CallID] = d
			if e.Run != run.ID || e.Cycle == 0 || !strings.HasPrefix(d.CallID, run.ID+"-") {
				t.Errorf("call %s is of run %q and cycle %d", d.CallID, e.Run, e.Cycle)
			}
		case event.ToolStarted:
			keys[d.CallID] = d.Key
		case event.ToolResult:
			call := requested[d.CallID]
			if want := "noted " + string(call.Args); d.Output != want || d.Tool != call.Tool {
				t.Errorf("result of %s is %q of %s, want %q of %s", d.CallID, d.Output, d.Tool, want, call.Tool)
			}
			if prefix := fmt.Sprintf("%s-%d-", run.ID, e.Cycle); e.Run != run.ID || !strings.HasPrefix(d.CallID, prefix) {
				t.Errorf("the result of %s is of run %q and cycle %d", d.CallID, e.Run, e.Cycle)
			}
			settled = append(settled, d.CallID)
		}
	}
	if len(settled) != 3 || len(got) != 3 {
		t.Fatalf("%d results of %d executions", len(settled), len(got))
	}
	for i, c := range got {
		if c.ID != settled[i] || string(c.Args) != string(requested[c.ID].Args) {
			t.Errorf("the tool was given %s %s for call %s", c.ID, c.Args, settled[i])
		}
		if c.Key == "" || c.Key != keys[c.ID] {
			t.Errorf("the tool was given the key %q for call %s, which was begun under %q", c.Key, c.ID, keys[c.ID])
		}
	}
}
