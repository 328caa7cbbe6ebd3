package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/tool"
)

var anyObject = json.RawMessage(`{"type":"object"}`)

func transcript(t *testing.T, m machine.Machine) string {
	t.Helper()
	b, err := json.Marshal(m.(*agent.Machine).Transcript())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func scribble(args json.RawMessage) {
	for i := range args {
		args[i] = 'X'
	}
}

func TestWhatAToolWritesIntoItsArgumentsIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).tools(tool.Tool{Name: "work", Schema: anyObject, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			scribble(c.Args)
			return tool.Result{Output: "worked"}, nil
		}}).turns(scripted.Turn{ToolCalls: calls("work", `{"a":1}`)}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		r.whole(run.ID)
		folded, err := r.Inspect(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if live, again := transcript(t, run.Machine()), transcript(t, folded); live != again {
			t.Errorf("the run had\n%s\nand its journal\n%s", live, again)
		}
	})
}

func TestACallWhoseDeclarationWritesIntoItsArgumentsIsNotRun(t *testing.T) {
	ran := false
	base := tool.Tool{Name: "work", Schema: anyObject, Run: func(context.Context, tool.Call) (tool.Result, error) { ran = true; return tool.Result{}, nil }}
	for name, declare := range map[string]func(*tool.Tool){
		"facts": func(b *tool.Tool) {
			b.Facts = func(args json.RawMessage) event.Facts { scribble(args); return event.Facts{} }
		},
		"label": func(b *tool.Tool) { b.Describe = func(args json.RawMessage) string { scribble(args); return "work" } },
		"resources": func(b *tool.Tool) {
			b.Access = func(args json.RawMessage) []event.Access { scribble(args); return nil }
		},
		"check": func(b *tool.Tool) { b.Check = func(args json.RawMessage) error { scribble(args); return nil } },
		"labels": func(b *tool.Tool) {
			b.LabelsFor = func(args json.RawMessage, _ *event.Facts) event.Labels { scribble(args); return event.Labels{} }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad := base
				declare(&bad)
				r := newRig(t).tools(bad).turns(scripted.Turn{ToolCalls: calls("work", `{"a":1}`)}, scripted.Turn{Text: "done"})
				run := r.start(t.Context())
				if o := outcome(t, run); !o.OK {
					t.Errorf("outcome %+v, error %+v", o, o.Error)
				}
				want := `{"error":"what work declares of this call changed the arguments that it was asked about","type":"tool_error"}`
				if res := results(r.whole(run.ID)); len(res) != 1 || res[0].Output != want || ran {
					t.Errorf("ran: %t, results %+v", ran, res)
				}
			})
		})
	}
}
