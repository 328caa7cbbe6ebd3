package flow_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/plan"
)

func TestAWorkflowThatDidNotCompleteSaysHowToGoOn(t *testing.T) {
	failed := func(class string) event.RunTerminatedBy {
		return event.RunTerminatedBy{Reason: event.ReasonStepFailed, Step: "build.0.fix", Error: &event.Failure{Class: class}}
	}
	for _, tt := range []struct {
		end    event.RunTerminatedBy
		advice string
	}{
		{event.RunTerminatedBy{Reason: event.ReasonFinalAnswer}, ""},
		{event.RunTerminatedBy{Reason: event.BudgetReason("timeout"), Limit: "timeout"}, "options.timeout"},
		{event.RunTerminatedBy{Reason: event.BudgetReason("usd_per_run"), Limit: "usd_per_run"}, "a higher usd_per_run"},
		{event.RunTerminatedBy{Reason: event.ReasonCancelled}, "Nothing is running"},
		{event.RunTerminatedBy{Reason: event.ReasonRejected}, "Decide sooner"},
		{event.RunTerminatedBy{Reason: event.ReasonMaxIterations, Limit: "maxIterations", Step: "build"}, "maxIterations"},
		{event.RunTerminatedBy{Reason: event.ReasonConditionError, Step: "build"}, "the expression of the step build"},
		{event.RunTerminatedBy{Reason: event.ReasonJudgeUnavailable, Step: "build"}, "the judge"},
		{event.RunTerminatedBy{Reason: event.ReasonImpossible, Step: "build"}, "impossible"},
		{event.RunTerminatedBy{Reason: event.ReasonStepFailed, Step: "build"}, "what happened to the step build"},
		{failed("maxIterations"), "maxIterations"},
		{failed("timeout"), "Raise the timeout of the step build.0.fix"},
		{failed("no_result"), "submit_result"},
		{failed("exit_code"), "Read why the step build.0.fix failed"},
	} {
		p := newPlayer(t, plan.Plan{Steps: []plan.Step{{ID: "a", Agent: &plan.Agent{Name: "x"}}}})
		p.hold = func(string) bool { return true }
		p.apply(tt.end)
		o := p.play()
		if o.Reason != tt.end.Reason || o.Completed == (o.NextSafeAction != "") || !strings.Contains(o.NextSafeAction, tt.advice) {
			t.Errorf("%s: %q of %+v", tt.end.Reason, o.NextSafeAction, o)
		}
		if o.NextSafeAction != "" && !strings.HasSuffix(o.NextSafeAction, ".") {
			t.Errorf("%q is no sentence", o.NextSafeAction)
		}
	}
}
