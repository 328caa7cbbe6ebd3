package pawl_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// A program that writes into a returned state must not move a run's deadlines.
func TestTheStateOfAParkedRunIsACopy(t *testing.T) {
	a := gatedAgent(new([]string))
	a.Approvals.Within = time.Hour
	a.Tools = append(a.Tools, tool.Tool{
		Name: "find", Description: "Find tools.", Schema: json.RawMessage(`{"type":"object"}`), Effect: event.EffectPure, ReadOnly: true,
		Run: func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Output: "send", Tools: []string{"send"}}, nil
		},
	})
	a.Model = says(scripted.Turn{ToolCalls: calls("find", `{}`)}, scripted.Turn{ToolCalls: calls("send", `{"to":"a"}`)})
	run := start(t, a, "go")
	before, err := json.Marshal(final(t, run))
	if err != nil {
		t.Fatal(err)
	}
	vandal := final(t, run)
	*vandal.Pending[0].ExpiresAt = time.Time{}
	copy(vandal.Pending[0].Args, `{"to":"b"}`)
	vandal.Parked.CallIDs[0] = "changed"
	found := vandal.Messages[2].Parts[0].(llm.ToolResult)
	found.Tools[0] = "changed"
	after, err := json.Marshal(final(t, run))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("a caller changed the run:\n%s", diff)
	}
}

func TestARunThatDidNotEndWellSaysWhy(t *testing.T) {
	outcome := func(o pawl.Outcome) pawl.State { return pawl.State{Run: "r", Outcome: &o} }
	refused := pawl.Outcome{Status: event.StatusFailed, Reason: event.ReasonModelError, Error: &event.Failure{Message: "invalid x-api-key"}}
	for want, s := range map[string]pawl.State{
		"": outcome(pawl.Outcome{Status: event.StatusStopped, Reason: event.ReasonMaxCycles, OK: true}),
		"pawl: run r failed: model_error: invalid x-api-key": outcome(refused),
		"pawl: run r stopped: budget:usd_per_run":            outcome(pawl.Outcome{Status: event.StatusStopped, Reason: event.BudgetReason("usd_per_run")}),
		"pawl: run r is parked: approval_required":           {Run: "r", Parked: &event.RunParked{Reason: event.ParkApproval}},
		"pawl: run r has not ended":                          {Run: "r"},
	} {
		got := ""
		if err := s.Err(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
