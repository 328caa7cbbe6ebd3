package engine_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// A rule that requires the sandbox is passed with each call to a tool that can run in
// one, also for an approved call; a tool that cannot is never run.
//
// rows: HAR-36
func TestACallThatARulePutsIntoTheSandboxRunsThereOrNotAtAll(t *testing.T) {
	for name, tt := range map[string]struct {
		sandboxed bool
		gates     []string
		ran       bool
	}{
		"a tool that runs in one":          {true, nil, true},
		"one that a person approved":       {true, []string{"work"}, true},
		"a tool that does not run in one":  {false, nil, false},
		"not even where a person approved": {false, []string{"work"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var boxed []bool
			work := tool.Tool{Name: "work", Schema: json.RawMessage(`{"type":"object"}`), Sandboxed: tt.sandboxed,
				Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
					boxed = append(boxed, c.Sandbox)
					return tool.Result{Output: "worked"}, nil
				}}
			free := work
			free.Name = "free"
			r := newRig(t).tools(work, free).asker(func(context.Context, event.Question) (event.Resolution, error) {
				return event.Resolution{Kind: event.ApprovalApproved}, nil
			}).turns(scripted.Turn{ToolCalls: calls("work", `{}`)}, scripted.Turn{ToolCalls: calls("free", `{}`)}, scripted.Turn{Text: "done"})
			r.cfg.Policy = policy.Rules{Declared: true, Gates: tt.gates, Rules: []policy.Rule{{Decision: event.DecisionSandbox, Tool: "work"}}}
			run := r.start(t.Context())
			if o := outcome(t, run); !o.OK {
				t.Fatalf("%+v", o)
			}
			got := results(r.whole(run.ID))
			switch {
			case tt.ran && (len(boxed) != 2 || !boxed[0] || boxed[1] || got[0].IsError):
				t.Errorf("ran with the sandbox %v: %+v", boxed, got[0])
			case !tt.ran && (len(boxed) != 1 || boxed[0] || got[0].ErrorType != event.ErrorDenied):
				t.Errorf("ran with the sandbox %v: %+v", boxed, got[0])
			}
		})
	}
}
