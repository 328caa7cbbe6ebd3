package flow_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/plan"
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

func TestALoopThatDidNotCompleteSaysHowToGoOn(t *testing.T) {
	for _, tt := range []struct {
		reason       event.Reason
		loop, ofGoal string
	}{
		{event.BudgetReason("usd_per_run"), "raise usd_per_run, and start the loop again.", "raise usd_per_run, and start the goal again."},
		{event.ReasonMaxIterations, "raise loop.maxIterations", "raise max_iterations in stop"},
		{event.ReasonCancelled, "Nothing is running; start the loop again", "Nothing is running; start the goal again"},
		{event.ReasonRejected, "what the reviewer said, and start the loop again.", "what the reviewer said, and start the goal again."},
		{event.ReasonToolUnavailable, "the command that ends the loop", "the check that needs it"},
		{event.ReasonConditionError, "the expression in stop_when", "the expression in done or validation"},
		{event.ReasonJudgeUnavailable, "why the judge gave no verdict", "why the judge gave no verdict"},
		{event.ReasonImpossible, "calls the task impossible", "the objective cannot be reached"},
		{event.ReasonModelError, "why the last iteration failed", "why the last iteration failed"},
	} {
		for want, p := range map[*string]plan.Plan{&tt.loop: refinement(plan.Loop{Max: 3}), &tt.ofGoal: goalState(plan.Goal{}, plan.Loop{}, command("check"))} {
			play := newPlayer(t, p)
			play.hold = func(string) bool { return true }
			play.apply(event.RunTerminatedBy{Reason: tt.reason, Limit: "usd_per_run"})
			if o := play.play(); !strings.Contains(o.NextSafeAction, *want) {
				t.Errorf("%s: %q lacks %q", tt.reason, o.NextSafeAction, *want)
			}
		}
	}
}
