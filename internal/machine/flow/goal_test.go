package flow_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// goalState returns a plan with a goal. done contains the conditions of the goal.
func goalState(g plan.Goal, l plan.Loop, done ...plan.Stop) plan.Plan {
	g.Objective, g.Reviewer, g.Done = "Make it green.", "reviewer", []string{"the tests pass"}
	if g.Validation == nil {
		g.Validation = []plan.Stop{{Expression: "true"}}
	}
	l.Goal, l.StopWhen, l.OnError, l.OnLimit = &g, done, plan.IterationContinues, plan.LimitStopped
	if l.Max == 0 {
		l.Max = 5
	}
	p := refinement(l)
	p.Steps[0].ID = "goal"
	return p
}

func command(name string) plan.Stop { return plan.Stop{Command: &plan.Command{Argv: []string{name}}} }

// reviewed returns the outcome of a reviewer.
func reviewed(verdict, human string) event.Outcome {
	return gave("", fmt.Sprintf(`{"verdict":%q,"objective":"it is","human":%q,"plan":["mend it"]}`, verdict, human))
}

func goalPlayer(t *testing.T, p plan.Plan, answers map[string]event.Outcome) *player {
	t.Helper()
	play := newPlayer(t, p)
	play.says = named(answers)
	play.eval = isTrue(func(e machine.Evaluate) bool { return e.Expression == "true" })
	play.exec = func(machine.RunCommand) event.CommandFinished { return exits(1, "--- FAIL") }
	return play
}

// rows: HAR-70..75
func TestGoalContinuesByTheAnswersAtEachCheckpoint(t *testing.T) {
	p := goalPlayer(t, goalState(plan.Goal{Every: 2, Steps: []string{"find it"}}, plan.Loop{Max: 5}, command("check")), map[string]event.Outcome{
		"goal/checkpoint/1": reviewed("not_done", "no"), "goal/checkpoint/2": ok("no answer"),
	})
	if o := p.play(); o.Reason != event.ReasonMaxIterations || o.Status != event.StatusStopped || o.OK || o.Iterations != 5 {
		t.Errorf("%+v", o)
	}
	want := []string{
		"goal.0", "goal.0/1", "goal.1", "goal.1/1", "goal/checkpoint/1", "goal.2", "goal.2/1", "goal.3", "goal.3/1", "goal/checkpoint/2", "goal.4", "goal.4/1",
	}
	same(t, p.ids(), want)
	points := checkpoints(p)
	if len(points) != 2 || points[0].Number != 2 || points[0].Verdict != event.VerdictNotDone || points[1].Verdict != "" || len(points[0].Questions) != 6 {
		t.Fatalf("%+v", points)
	}
	if points[0].Answer(event.AskObjective) != "it is" || !strings.Contains(points[0].Questions[1].Answer, "`true` holds; `check` does not hold") ||
		points[0].Questions[3].Answer != "no: `check` does not hold (it exited with 1)" || !strings.Contains(points[1].Answer(event.AskHuman), "gave no answer") {
		t.Errorf("%+v", points)
	}
	// A checkpoint's change of the plan applies from then on, and later prompts contain
	// the new plan.
	if before, after := p.told("goal.1"), p.told("goal.2"); !strings.Contains(before, "1. find it") || !strings.Contains(after, "1. mend it") || strings.Contains(after, "find it") ||
		!strings.Contains(after, "--- FAIL") || !strings.Contains(after, "said by go") {
		t.Errorf("%s\n\n%s", before, after)
	}
	if a, b := p.again(), p.m; !reflect.DeepEqual(a.State(), b.State()) {
		t.Errorf("a fold is at %+v", a.State())
	}
}

func checkpoints(p *player) (all []event.Checkpoint) {
	for _, e := range p.events {
		if d, is := e.Data.(event.Checkpoint); is {
			all = append(all, d)
		}
	}
	return all
}

// rows: HAR-70
func TestACheckpointComesAfterATime(t *testing.T) {
	p := goalPlayer(t, goalState(plan.Goal{After: time.Hour}, plan.Loop{Max: 7}, command("check")), nil)
	p.says = func(a machine.StartChild) (event.Outcome, event.Taint) {
		if a.Name == "reviewer" {
			return reviewed("not_done", "no"), event.Taint{}
		}
		p.now = p.now.Add(40 * time.Minute)
		return ok(a.ID), event.Taint{}
	}
	p.play()
	var after []int
	for _, d := range checkpoints(p) {
		after = append(after, d.Number)
	}
	same(t, after, []int{2, 4, 6})
}

func TestAPlanIsMadeFirst(t *testing.T) {
	for name, result := range map[string]string{"one": `{"steps":["find it","mend it"]}`, "none": `{}`} {
		p := goalPlayer(t, goalState(plan.Goal{Planner: "planner"}, plan.Loop{Max: 1}, command("check")), map[string]event.Outcome{"goal/plan": gave("", result)})
		p.play()
		points := checkpoints(p)
		if ids := p.ids(); len(points) != 1 || points[0].Label != "plan" || ids[0] != "goal/plan" || ids[1] != "goal.0" {
			t.Fatalf("%s: %+v %v", name, points, ids)
		}
		if told := strings.Contains(p.told("goal.0"), "1. find it\n2. mend it"); told != (name == "one") {
			t.Errorf("%s: the plan is told: %t", name, told)
		}
	}
}

// rows: HAR-77, HAR-78, HAR-81..84
func TestEveryRuleEndsAGoalUnderItsOwnReason(t *testing.T) {
	judge := plan.Stop{Judge: "judge"}
	holds := plan.Stop{Expression: "true"}
	stopped := func(r event.Reason) event.Outcome {
		return event.Outcome{Status: event.StatusFailed, Reason: r, Error: &event.Failure{Class: string(r), Message: "so it is"}}
	}
	outOfMoney := event.Outcome{Status: event.StatusStopped, Reason: "budget:usd_per_run", Limit: "usd_per_run", Kind: "parent"}
	for name, c := range map[string]struct {
		plan    plan.Plan
		answers map[string]event.Outcome
		exec    *event.CommandFinished
		reason  event.Reason
		kind    string
		status  event.Status
		ran     int
	}{
		"all of it holds":                           {plan: goalState(plan.Goal{}, plan.Loop{}, holds, judge), answers: map[string]event.Outcome{"goal.0/judge": gave("", `{"verdict":"done","reason":"r"}`)}, reason: event.ReasonConditionMet, kind: "done", status: event.StatusCompleted, ran: 1},
		"a final answer":                            {plan: goalState(plan.Goal{FinalAnswer: true}, plan.Loop{}, command("check")), reason: event.ReasonFinalAnswer, status: event.StatusCompleted, ran: 1},
		"a final answer, which is done":             {plan: goalState(plan.Goal{FinalAnswer: true}, plan.Loop{}, holds), reason: event.ReasonConditionMet, kind: "done", status: event.StatusCompleted, ran: 1},
		"a failed iteration is no final answer":     {plan: goalState(plan.Goal{FinalAnswer: true}, plan.Loop{}, command("check")), answers: map[string]event.Outcome{"goal.0": fails("x"), "goal.1": fails("y")}, reason: event.ReasonFinalAnswer, status: event.StatusCompleted, ran: 3},
		"its cap":                                   {plan: goalState(plan.Goal{}, plan.Loop{Max: 2}, command("check")), reason: event.ReasonMaxIterations, status: event.StatusStopped, ran: 2},
		"the judge has no word before the evidence": {plan: goalState(plan.Goal{}, plan.Loop{Max: 1}, command("check"), judge), reason: event.ReasonMaxIterations, status: event.StatusStopped, ran: 1},
		"the judge says no":                         {plan: goalState(plan.Goal{}, plan.Loop{Max: 1}, holds, judge), answers: map[string]event.Outcome{"goal.0/judge": gave("", `{"verdict":"not_done","reason":"r"}`)}, reason: event.ReasonMaxIterations, status: event.StatusStopped, ran: 1},
		"the judge says never":                      {plan: goalState(plan.Goal{}, plan.Loop{}, holds, judge), answers: map[string]event.Outcome{"goal.0/judge": gave("", `{"verdict":"impossible","reason":"r"}`)}, reason: event.ReasonImpossible, status: event.StatusFailed, ran: 1},
		"the reviewer says never":                   {plan: goalState(plan.Goal{Every: 1}, plan.Loop{}, command("check")), answers: map[string]event.Outcome{"goal/checkpoint/1": reviewed("impossible", "no")}, reason: event.ReasonImpossible, status: event.StatusFailed, ran: 1},
		"no reviewer answers":                       {plan: goalState(plan.Goal{Every: 1}, plan.Loop{JudgeFailuresMax: 2}, command("check")), reason: event.ReasonJudgeUnavailable, status: event.StatusFailed, ran: 2},
		"iterations that fail":                      {plan: goalState(plan.Goal{}, plan.Loop{ErrorsMax: 2}, command("check")), answers: map[string]event.Outcome{"goal.1": fails("x"), "goal.2": fails("y")}, reason: event.ReasonRepeatedFailure, status: event.StatusFailed, ran: 3},
		"one that fails and is done":                {plan: goalState(plan.Goal{}, plan.Loop{ErrorsMax: 1}, holds), answers: map[string]event.Outcome{"goal.0": fails("x")}, reason: event.ReasonConditionMet, kind: "done", status: event.StatusCompleted, ran: 1},
		"a rule denies":                             {plan: goalState(plan.Goal{}, plan.Loop{}, command("check")), answers: map[string]event.Outcome{"goal.0": stopped(event.ReasonPolicyDenied)}, reason: event.ReasonPolicyDenied, status: event.StatusFailed, ran: 1},
		"a tool is gone":                            {plan: goalState(plan.Goal{}, plan.Loop{}, command("check")), answers: map[string]event.Outcome{"goal.0": stopped(event.ReasonToolUnavailable)}, reason: event.ReasonToolUnavailable, status: event.StatusFailed, ran: 1},
		"a rule denies a check":                     {plan: goalState(plan.Goal{}, plan.Loop{}, command("check")), exec: &event.CommandFinished{ErrorType: event.ErrorDenied}, reason: event.ReasonPolicyDenied, status: event.StatusFailed, ran: 1},
		"a check that is not there":                 {plan: goalState(plan.Goal{}, plan.Loop{}, command("check")), exec: &event.CommandFinished{ErrorType: event.ErrorNotStarted}, reason: event.ReasonToolUnavailable, status: event.StatusFailed, ran: 1},
		"a check that is not there yet":             {plan: goalState(plan.Goal{}, plan.Loop{Max: 2}, command("./check")), exec: &event.CommandFinished{ErrorType: event.ErrorNotStarted}, reason: event.ReasonMaxIterations, status: event.StatusStopped, ran: 2},
		"the money is spent":                        {plan: goalState(plan.Goal{}, plan.Loop{}, command("check")), answers: map[string]event.Outcome{"goal.1": outOfMoney}, reason: "budget:usd_per_run", status: event.StatusStopped, ran: 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := goalPlayer(t, c.plan, c.answers)
			if c.exec != nil {
				p.exec = func(machine.RunCommand) event.CommandFinished { return *c.exec }
			}
			o := p.play()
			if o.Reason != c.reason || o.Kind != c.kind || o.Status != c.status || o.Completed != (c.status == event.StatusCompleted) || o.Iterations != c.ran {
				t.Errorf("%+v\n%v", o, p.ids())
			}
			if !o.Completed && o.NextSafeAction == "" {
				t.Error("nothing is said of how to go on")
			}
			if name == "the judge has no word before the evidence" && slices.Contains(p.ids(), "goal.0/judge") {
				t.Error("the judge was asked although the evidence does not hold")
			}
		})
	}
}

// A check that is both a validation and a done condition runs once per iteration.
func TestACheckOfAGoalRunsOnceInAnIteration(t *testing.T) {
	p := goalPlayer(t, goalState(plan.Goal{Validation: []plan.Stop{command("check")}}, plan.Loop{Max: 2}, command("check")), nil)
	p.play()
	same(t, p.ids(), []string{"goal.0", "goal.0/0", "goal.1", "goal.1/0"})
}

// rows: HAR-79
func TestAPersonIsAskedWhetherAGoalIsDoneOnceTheRestHolds(t *testing.T) {
	human := plan.Stop{Human: &plan.Human{Prompt: "Is it?", Feedback: true}}
	p := goalPlayer(t, goalState(plan.Goal{}, plan.Loop{}, command("check"), human), nil)
	green := false
	p.exec = func(machine.RunCommand) event.CommandFinished {
		if green {
			return exits(0, "ok")
		}
		green = true
		return exits(1, "FAIL")
	}
	p.play()
	open := p.m.State().Pending
	if len(open) != 1 || open[0].ID != "review-2" {
		t.Fatalf("%+v", open)
	}
	p.apply(open[0].Resolve(event.Resolution{Kind: event.ApprovalRejected, Approver: "ann", Reason: "mind the umlauts", At: p.now}))
	p.play()
	if told := p.told("goal.2"); !strings.Contains(told, "mind the umlauts") {
		t.Errorf("the next iteration does not hear why:\n%s", told)
	}
	p.apply(p.m.State().Pending[0].Resolve(event.Resolution{Kind: event.ApprovalApproved, Approver: "ann", At: p.now}))
	if o := p.play(); o.Reason != event.ReasonConditionMet || o.Kind != "done" || o.Iterations != 3 {
		t.Errorf("%+v", o)
	}
}

// rows: HAR-69, HAR-80
func TestABlockedGoalWaitsForAMessageAndKeepsAllItKnows(t *testing.T) {
	judge := plan.Stop{Judge: "judge"}
	for name, c := range map[string]struct {
		plan    plan.Plan
		answers map[string]event.Outcome
	}{
		"by the reviewer": {goalState(plan.Goal{Every: 1}, plan.Loop{Max: 2}, command("check")), map[string]event.Outcome{"goal/checkpoint/1": reviewed("blocked_on_human", "Which port?")}},
		"by the judge": {goalState(plan.Goal{}, plan.Loop{Max: 2}, plan.Stop{Expression: "true"}, judge), map[string]event.Outcome{
			"goal.0/judge": gave("", `{"verdict":"blocked_on_human","reason":"Which port?"}`), "goal.1/judge": gave("", `{"verdict":"not_done","reason":""}`),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := goalPlayer(t, c.plan, c.answers)
			parked := func() {
				t.Helper()
				p.play()
				if s := p.m.State(); s.Phase != machine.Parked || s.Parked.Reason != event.ParkInput || s.Parked.Detail != "Which port?" {
					t.Fatalf("%+v", s)
				}
			}
			parked()
			p.apply(event.RunResumed{})
			parked() // there is no answer yet
			p.m = p.again()
			p.apply(event.InputReceived{Text: "Use port 8080", By: "ann"})
			p.apply(event.InputReceived{Text: "And hurry", By: "ann"})
			p.apply(event.RunResumed{})
			if o := p.play(); o.Reason != event.ReasonMaxIterations || o.Iterations != 2 {
				t.Errorf("%+v", o)
			}
			told := p.told("goal.1")
			for _, part := range []string{"Make it green.", "- Use port 8080\n- And hurry", "said by go", "Iteration 2 of 2"} {
				if !strings.Contains(told, part) {
					t.Errorf("%q is not told:\n%s", part, told)
				}
			}
		})
	}
}

// A cancel, or the limit on its time, ends a goal that waits for a message.
func TestABlockedGoalEndsWhenItIsCancelled(t *testing.T) {
	p := goalPlayer(t, goalState(plan.Goal{Every: 1}, plan.Loop{}, command("check")), map[string]event.Outcome{"goal/checkpoint/1": reviewed("blocked_on_human", "Which port?")})
	p.play()
	p.apply(event.CancelRequested{By: "ann"})
	if o := p.play(); o.Status != event.StatusCancelled {
		t.Errorf("%+v", o)
	}
	at := newPlayerOf(t, flow.Config{Plan: goalState(plan.Goal{}, plan.Loop{}, command("check")), Limits: budget.Limits{MaxWallSeconds: 60}})
	at.eval = isTrue(func(machine.Evaluate) bool { return true })
	at.exec = func(machine.RunCommand) event.CommandFinished { return exits(1, "") }
	at.says = func(a machine.StartChild) (event.Outcome, event.Taint) {
		at.now = at.now.Add(40 * time.Second)
		return ok(a.ID), event.Taint{}
	}
	if o := at.play(); o.Reason != "budget:max_wall_time_seconds" || o.Iterations > 2 {
		t.Errorf("%+v", o)
	}
}
