package flow_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// diamond returns a plan with design, two parallel steps after it, and a last step that
// depends on both.
func diamond() plan.Plan {
	return plan.Plan{Name: "api", Steps: []plan.Step{
		step("integrate", "server", "database"), step("server", "design"), step("database", "design"), step("design"),
	}}
}

func TestAStepBeginsWhenAllThatItDependsOnHasEnded(t *testing.T) {
	p := newPlayer(t, diamond())
	p.says = named(nil)
	o := p.play()
	same(t, p.ids(), []string{"design", "server", "database", "integrate"})
	p.holds(`
started design 1
completed design
started server 1
started database 1
completed server
completed database
started integrate 1
completed integrate`)
	if !o.OK || o.FinalOutput != "said by integrate" || *o.Steps != (event.StepCounts{Completed: 4}) || p.most != 2 {
		t.Errorf("%+v, %d at once", o, p.most)
	}
}

func TestSeveralLastStepsStandEachUnderItsID(t *testing.T) {
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{step("a"), step("b")}})
	p.says = named(nil)
	if o := p.play(); o.FinalOutput != "## a\n\nsaid by a\n\n## b\n\nsaid by b" {
		t.Errorf("%q", o.FinalOutput)
	}
}

func TestWhatAFailedStepMeansForTheOthers(t *testing.T) {
	for policy, want := range map[plan.OnFailure]struct {
		story  string
		counts event.StepCounts
	}{
		plan.Cascade: {`
started a 1
started other 1
failed a: model_error: no key
failed b: dependency_failed: the step a, on which it depends, did not complete
failed c: dependency_failed: the step b, on which it depends, did not complete
completed other
started more 1
completed more`, event.StepCounts{Completed: 2, Failed: 3}},
		plan.SkipDependents: {`
started a 1
started other 1
failed a: model_error: no key
skipped b: the step a, on which it depends, did not complete
skipped c: the step b, on which it depends, did not complete
completed other
started more 1
completed more`, event.StepCounts{Completed: 2, Failed: 1, Skipped: 2}},
		plan.Abort: {`
started a 1
started other 1
failed a: model_error: no key
cancelled b
cancelled c
cancelled more
cancelled other`, event.StepCounts{Failed: 1, Cancelled: 4}},
	} {
		t.Run(string(policy), func(t *testing.T) {
			p := newPlayer(t, plan.Plan{OnFailure: policy, Steps: []plan.Step{step("a"), step("b", "a"), step("c", "b"), step("other"), step("more", "other")}})
			p.says = named(map[string]event.Outcome{"a": fails("no key")})
			o := p.play()
			p.holds(want.story)
			if o.OK || o.Status != event.StatusFailed || o.Reason != event.ReasonStepFailed || o.Step != "a" || o.Error.Message != "no key" || *o.Steps != want.counts {
				t.Errorf("%+v, %+v", o, o.Steps)
			}
		})
	}
}

func conditional(id, condition string, after ...string) plan.Step {
	s := step(id, after...)
	s.Condition = condition
	return s
}

func TestAConditionSkipsAStepOrFailsIt(t *testing.T) {
	for name, c := range map[string]struct {
		gives  event.ConditionEvaluated
		story  string
		reason event.Reason
	}{
		"true":        {event.ConditionEvaluated{Value: json.RawMessage(`true`)}, "started b 1\ncompleted b\nstarted c 1\ncompleted c", event.ReasonFinalAnswer},
		"false":       {event.ConditionEvaluated{Value: json.RawMessage(`false`)}, "skipped b: its condition is false\nstarted c 1\ncompleted c", event.ReasonFinalAnswer},
		"missing key": {event.ConditionEvaluated{Error: "no such key: x", ErrorType: "missing_key"}, "skipped b: its condition names what is not there: no such key: x\nstarted c 1\ncompleted c", event.ReasonFinalAnswer},
		"other error": {event.ConditionEvaluated{Error: "no overload"}, "failed b: condition_error: steps.a.result.x: no overload\nfailed c: dependency_failed: the step b, on which it depends, did not complete", event.ReasonConditionError},
		"no truth":    {event.ConditionEvaluated{Value: json.RawMessage(`3`)}, "failed b: condition_error: steps.a.result.x: it gave 3, which is neither true nor false\nfailed c: dependency_failed: the step b, on which it depends, did not complete", event.ReasonConditionError},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, plan.Plan{Steps: []plan.Step{step("a"), conditional("b", "steps.a.result.x", "a"), step("c", "b")}})
			p.says = named(map[string]event.Outcome{"a": gave("yes", `{"x":1}`)})
			p.eval = func(a machine.Evaluate) event.ConditionEvaluated {
				if string(a.Variables) != `{"steps":{"a":{"content":"yes","status":"completed","result":{"x":1}}},"content":""}` || a.Step != "b" {
					t.Errorf("%s: %s", a.Step, a.Variables)
				}
				return c.gives
			}
			o := p.play()
			p.holds("started a 1\ncompleted a\n" + c.story)
			if o.Reason != c.reason {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestAStepIsTriedAgainAsOftenAsItsPlanSays(t *testing.T) {
	s := step("a")
	s.Retries = 2
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{s}})
	p.says = named(map[string]event.Outcome{"a": fails("once"), "a~2": fails("twice")})
	if o := p.play(); !o.OK || o.FinalOutput != "said by a~3" || o.Steps.Completed != 1 {
		t.Errorf("%+v", o)
	}
	p.holds("started a 1\nfailed a: model_error: once\nstarted a 2\nfailed a: model_error: twice\nstarted a 3\ncompleted a")
}

func TestATimeoutBoundsAStepWithItsAttempts(t *testing.T) {
	s := step("slow")
	s.Timeout, s.Retries = time.Minute, 1
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{s, step("b", "slow")}})
	p.says, p.hold = named(map[string]event.Outcome{"slow": fails("once")}), func(id string) bool { return id == "slow~2" }
	if o := p.play(); o.OK || !p.now.Equal(time.Unix(1060, 0)) {
		t.Errorf("%+v at %s", o, p.now)
	}
	p.holds("started slow 1\nfailed slow: model_error: once\nstarted slow 2\nfailed slow: timeout: it was not done after 1m0s\n" +
		"failed b: dependency_failed: the step slow, on which it depends, did not complete")
}

// A step whose time ends while it is queued for another attempt fails, and does not
// release a slot that it does not occupy.
func TestTheTimeOfAStepIsOverBetweenTwoAttempts(t *testing.T) {
	s := step("a")
	s.Agent.Name, s.Timeout, s.Retries = "flaky", time.Minute, 2
	p := newPlayer(t, plan.Plan{Width: 1, Scheduler: plan.RoundRobin, Steps: []plan.Step{s, step("b"), step("c")}})
	p.says = named(map[string]event.Outcome{"a": fails("bad luck")})
	p.hold = func(id string) bool { return id == "b" }
	p.play()
	p.hold = nil
	p.play()
	p.holds(`
started a 1
failed a: model_error: bad luck
started b 1
failed a: timeout: it was not done after 1m0s
completed b
started c 1
completed c`)
}

// Nothing begins together with a failure that cancels everything.
func TestAFailureThatCancelsComesBeforeWhatBegins(t *testing.T) {
	sub := plan.Step{ID: "sub", Plan: &plan.Plan{Steps: []plan.Step{step("x")}}}
	p := newPlayer(t, plan.Plan{OnFailure: plan.Abort, Steps: []plan.Step{sub, conditional("odd", "1")}})
	p.eval = func(machine.Evaluate) event.ConditionEvaluated { return event.ConditionEvaluated{Error: "no boolean"} }
	p.play()
	p.holds(`
started sub 1
failed odd: condition_error: 1: no boolean
cancelled sub.x
cancelled sub`)
}

// A step that has ended is not late, even if the clock passes its deadline before its
// end is journalled.
func TestTheTimeOfAStepIsOverAsItEnds(t *testing.T) {
	s := step("a")
	s.Timeout = time.Minute
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{s, step("b", "a")}})
	p.says = named(nil)
	p.decide()
	p.now = p.now.Add(time.Minute)
	p.finishNext()
	if o := p.play(); !o.OK {
		t.Errorf("%+v", o)
	}
}

func TestATimeoutOfThePlanCancelsWhatIsLeft(t *testing.T) {
	p := newPlayer(t, plan.Plan{Timeout: time.Hour, Steps: []plan.Step{step("a"), step("slow", "a"), step("b", "slow")}})
	p.says, p.hold = named(nil), func(id string) bool { return id == "slow" }
	o := p.play()
	if o.Reason != "budget:timeout" || o.Status != event.StatusStopped || *o.Steps != (event.StepCounts{Completed: 1, Cancelled: 2}) {
		t.Errorf("%+v", o)
	}
	p.holds("started a 1\ncompleted a\nstarted slow 1\ncancelled b\ncancelled slow")
}

func TestACancelGivesEachStepItsEnd(t *testing.T) {
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{step("a"), step("b", "a"), {ID: "sub", Plan: &plan.Plan{Steps: []plan.Step{step("x"), step("y", "x")}}}}})
	p.says, p.hold = named(nil), func(string) bool { return true }
	p.play()
	p.apply(event.CancelRequested{By: "ann", Reason: "enough"})
	o := p.play()
	if o.Reason != event.ReasonCancelled || *o.Steps != (event.StepCounts{Cancelled: 3}) {
		t.Errorf("%+v, %+v", o, o.Steps)
	}
	p.holds("started a 1\nstarted sub 1\nstarted sub.x 1\ncancelled a\ncancelled sub.x\ncancelled b\ncancelled sub.y\ncancelled sub")
}

func TestAPlanInAPlanIsASteps(t *testing.T) {
	inner := plan.Plan{Steps: []plan.Step{step("x"), step("y", "x")}}
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{step("a"), {ID: "sub", DependsOn: []string{"a"}, Plan: &inner}, step("b", "sub")}})
	p.says = named(nil)
	o := p.play()
	if !o.OK || o.Steps.Completed != 3 {
		t.Errorf("%+v", o)
	}
	p.holds("started a 1\ncompleted a\nstarted sub 1\nstarted sub.x 1\ncompleted sub.x\nstarted sub.y 1\ncompleted sub.y\ncompleted sub\nstarted b 1\ncompleted b")
}

func TestBoundsOnWhatIsAtWork(t *testing.T) {
	wide := func(n int) (steps []plan.Step) {
		for i := range n {
			steps = append(steps, step(string(rune('a'+i))))
		}
		return steps
	}
	for name, c := range map[string]struct {
		cfg  flow.Config
		most int
	}{
		"none":              {flow.Config{Plan: plan.Plan{Steps: wide(9)}}, 9},
		"the plan's":        {flow.Config{Plan: plan.Plan{Steps: wide(9), Concurrency: 3}}, 3},
		"the run's":         {flow.Config{Plan: plan.Plan{Steps: wide(9), Concurrency: 3}, Concurrency: 2}, 2},
		"the width's":       {flow.Config{Plan: plan.Plan{Steps: wide(9), Width: 5}}, 5},
		"of a plan in it":   {flow.Config{Plan: plan.Plan{Steps: []plan.Step{{ID: "s", Plan: &plan.Plan{Steps: wide(9), Concurrency: 4}}}}}, 4},
		"of what is around": {flow.Config{Concurrency: 3, Plan: plan.Plan{Steps: []plan.Step{{ID: "s", Plan: &plan.Plan{Steps: wide(9), Concurrency: 4}}}}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayerOf(t, c.cfg)
			p.says = named(nil)
			if o := p.play(); !o.OK || p.most != c.most {
				t.Errorf("%d at once, want %d: %+v", p.most, c.most, o)
			}
		})
	}
}

func by(agent, id string, after ...string) plan.Step {
	s := step(id, after...)
	s.Agent.Name = agent
	return s
}

func TestTheOrdersOfSteps(t *testing.T) {
	steps := []plan.Step{by("x", "a"), by("x", "b"), by("y", "c"), by("y", "d"), by("x", "e"), by("z", "last", "d")}
	for scheduler, want := range map[plan.Scheduler][]string{
		plan.DependencyFirst: {"d", "a", "b", "c", "e", "last"},
		plan.RoundRobin:      {"a", "c", "b", "d", "last", "e"},
		plan.LeastBusy:       {"a", "c", "b", "d", "last", "e"},
	} {
		t.Run(string(scheduler), func(t *testing.T) {
			p := newPlayer(t, plan.Plan{Steps: steps, Scheduler: scheduler, Concurrency: 1})
			p.says = named(nil)
			p.play()
			same(t, p.ids(), want)
		})
	}
}

func TestLeastBusyStartsWhoseAgentHasTheFewestUnderWay(t *testing.T) {
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{by("x", "a"), by("x", "b"), by("y", "c"), by("y", "d")}, Scheduler: plan.LeastBusy, Concurrency: 2})
	p.says, p.hold = named(nil), func(id string) bool { return id == "a" }
	p.play()
	same(t, p.ids(), []string{"a", "c", "d", "b"})
}

func TestUnexpectedEventIsAMisfit(t *testing.T) {
	p := newPlayer(t, diamond())
	p.decide()
	e := event.Event{Seq: 9, Run: "run", Time: p.now, Data: event.StepFinished{Step: "integrate", Status: event.StepStatusCompleted}}
	if err := p.m.Apply(&e); !errors.Is(err, tree.ErrMisfit) {
		t.Errorf("%v", err)
	}
}

// A pause lets active children finish, begins nothing, and parks the run. A delay
// between iterations does not postpone the park.
func TestAPauseParksTheRunOnceNothingIsUnderWay(t *testing.T) {
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{
		step("a"), step("b", "a"), {ID: "l", Loop: &plan.Loop{Single: true, Max: 2, Delay: time.Hour, Body: plan.Plan{Steps: []plan.Step{step("")}}}},
	}})
	p.says = named(nil)
	p.decide()
	p.apply(event.PauseRequested{By: "ann"})
	p.play()
	if s := p.m.State(); s.Parked == nil || s.Parked.Reason != event.ParkPaused {
		t.Fatalf("%+v\n%s", s, p.story())
	}
	same(t, p.ids(), []string{"a", "l.0"})
	p.apply(event.RunResumed{})
	if o := p.play(); !o.OK || len(p.begun) != 4 {
		t.Errorf("%+v\n%s", o, p.story())
	}
}
