package flow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// devCycle returns a plan with design, followed by a loop of implement and review.
func devCycle(l plan.Loop) plan.Plan {
	l.Body = plan.Plan{Steps: []plan.Step{step("implement"), step("review", "implement")}}
	return plan.Plan{Steps: []plan.Step{step("design"), {ID: "dev-cycle", DependsOn: []string{"design"}, Loop: &l}, step("ship", "dev-cycle")}}
}

// single returns a plan with a loop over one step.
func single(l plan.Loop) plan.Plan {
	l.Single, l.Body = true, plan.Plan{Steps: []plan.Step{step("")}}
	return plan.Plan{Steps: []plan.Step{{ID: "check", Loop: &l}}}
}

// each returns a plan with a loop over items that deploys and verifies each item.
func each(items *plan.Items, inner ...plan.Step) plan.Plan {
	if inner == nil {
		inner = []plan.Step{step("deploy"), step("verify", "deploy")}
	}
	return plan.Plan{Steps: []plan.Step{step("list"), {ID: "deploy-each", DependsOn: []string{"list"}, Loop: &plan.Loop{Items: items, Body: plan.Plan{Steps: inner}}}}}
}

func static(n int) *plan.Items {
	i := &plan.Items{}
	for k := range n {
		i.Static = append(i.Static, json.RawMessage(fmt.Sprintf(`{"n":%d}`, k)))
	}
	return i
}

func isTrue(when func(machine.Evaluate) bool) func(machine.Evaluate) event.ConditionEvaluated {
	return func(a machine.Evaluate) event.ConditionEvaluated {
		return event.ConditionEvaluated{Value: json.RawMessage(fmt.Sprint(when(a)))}
	}
}

// rows: DAG-1, DAG-6..9, DAG-12, DAG-18, DAG-24, DAG-64
func TestALoopWithoutAConditionRunsAsOftenAsItsCap(t *testing.T) {
	p := newPlayer(t, devCycle(plan.Loop{Max: 2}))
	p.says = named(nil)
	if o := p.play(); !o.OK || p.most != 1 {
		t.Errorf("%+v", o)
	}
	p.holds(`
started design 1
completed design
started dev-cycle 1
started dev-cycle.0.implement 1
completed dev-cycle.0.implement
started dev-cycle.0.review 1
completed dev-cycle.0.review
iteration 1 of dev-cycle
started dev-cycle.1.implement 1
completed dev-cycle.1.implement
started dev-cycle.1.review 1
completed dev-cycle.1.review
iteration 2 of dev-cycle
completed dev-cycle
started ship 1
completed ship`)
}

// rows: DAG-13, DAG-23, DAG-52, DAG-54
func TestUntilIsEvaluatedAfterEachIterationOverItsSteps(t *testing.T) {
	p := newPlayer(t, devCycle(plan.Loop{Max: 5, StopWhen: []plan.Stop{{Expression: "steps.review.content.contains('LGTM')"}}}))
	p.says = named(map[string]event.Outcome{"dev-cycle.1.review": gave("LGTM", `{"grade":1}`)})
	var seen []string
	p.eval = isTrue(func(a machine.Evaluate) bool {
		seen = append(seen, string(a.Variables))
		return strings.Contains(string(a.Variables), "LGTM")
	})
	if o := p.play(); !o.OK || o.Steps.Completed != 3 {
		t.Errorf("%+v", o)
	}
	same(t, p.ids(), []string{"design", "dev-cycle.0.implement", "dev-cycle.0.review", "dev-cycle.1.implement", "dev-cycle.1.review", "ship"})
	same(t, seen, []string{
		`{"steps":{"implement":{"content":"said by dev-cycle.0.implement","status":"completed"},"review":{"content":"said by dev-cycle.0.review","status":"completed"}},"iteration":0,"content":"said by dev-cycle.0.review","status":"completed"}`,
		`{"steps":{"implement":{"content":"said by dev-cycle.1.implement","status":"completed"},"review":{"content":"LGTM","status":"completed","result":{"grade":1}}},"iteration":1,"content":"LGTM","result":{"grade":1},"status":"completed"}`,
	})
}

// rows: DAG-5, DAG-22, DAG-53
func TestALoopOfTheStepItself(t *testing.T) {
	p := newPlayer(t, single(plan.Loop{Max: 10, StopWhen: []plan.Stop{{Expression: "content.contains('healthy')"}}}))
	p.says = named(map[string]event.Outcome{"check.1": gave("healthy", `{"up":true}`)})
	p.eval = isTrue(func(a machine.Evaluate) bool {
		return strings.Contains(string(a.Variables), `"content":"healthy","result":{"up":true}`)
	})
	if o := p.play(); !o.OK || o.FinalOutput != "healthy" || string(o.Result) != `{"up":true}` {
		t.Errorf("%+v", o)
	}
	p.holds("started check 1\nstarted check.0 1\ncompleted check.0\niteration 1 of check\nstarted check.1 1\ncompleted check.1\niteration 2 of check\ncompleted check")
}

// rows: DAG-26
func TestWhatTheCapMeans(t *testing.T) {
	until := []plan.Stop{{Expression: "false"}}
	for name, c := range map[string]struct {
		loop   plan.Loop
		status event.Status
		reason event.Reason
		ok     bool
		passes int
	}{
		"without a condition":           {plan.Loop{Max: 2}, event.StatusCompleted, event.ReasonFinalAnswer, true, 2},
		"with one":                      {plan.Loop{Max: 2, StopWhen: until}, event.StatusFailed, event.ReasonStepFailed, false, 2},
		"with one that may be missed":   {plan.Loop{Max: 2, StopWhen: until, OnLimit: plan.LimitIsOK}, event.StatusCompleted, event.ReasonFinalAnswer, true, 2},
		"with one, as a stop":           {plan.Loop{Max: 2, StopWhen: until, OnLimit: plan.LimitStopped}, event.StatusStopped, event.ReasonMaxIterations, false, 2},
		"the safety cap":                {plan.Loop{}, event.StatusCompleted, event.ReasonFinalAnswer, true, 100},
		"the safety cap, a condition":   {plan.Loop{StopWhen: until}, event.StatusCompleted, event.ReasonFinalAnswer, true, 100},
		"no verdict in the last either": {plan.Loop{Max: 1, StopWhen: []plan.Stop{{Judge: "judge"}}}, event.StatusFailed, event.ReasonStepFailed, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, single(c.loop))
			p.says, p.eval = named(nil), isTrue(func(machine.Evaluate) bool { return false })
			o := p.play()
			if o.Status != c.status || o.Reason != c.reason || o.OK != c.ok || strings.Count(p.story(), "iteration ") != c.passes {
				t.Errorf("%+v\n%s", o, p.story())
			}
		})
	}
}

// The last iteration is checked before the cap applies.
//
// rows: DAG-12
func TestTheLastIterationIsLookedAtBeforeTheCap(t *testing.T) {
	p := newPlayer(t, single(plan.Loop{Max: 2, StopWhen: []plan.Stop{{Expression: "iteration == 1"}}}))
	p.says, p.eval = named(nil), isTrue(func(a machine.Evaluate) bool { return strings.Contains(string(a.Variables), `"iteration":1`) })
	if o := p.play(); !o.OK {
		t.Errorf("%+v", o)
	}
}

// rows: DAG-19, DAG-20
func TestLoopWithoutCapEndsAfterHundredIterations(t *testing.T) {
	p := newPlayer(t, single(plan.Loop{StopWhen: []plan.Stop{{Expression: "false"}}}))
	p.says, p.eval = named(nil), isTrue(func(machine.Evaluate) bool { return false })
	if o := p.play(); !o.OK || o.FinalOutput != "said by check.99" || len(p.begun) != 100 {
		t.Errorf("%+v", o)
	}
}

// rows: DAG-21
func TestADelayIsBetweenIterations(t *testing.T) {
	p := newPlayer(t, single(plan.Loop{Max: 3, Delay: 10 * time.Second}))
	p.says = named(nil)
	if o := p.play(); !o.OK || !p.now.Equal(time.Unix(1020, 0)) {
		t.Errorf("%+v at %s", o, p.now)
	}
}

// judged returns a loop with an expression and then a judge as stop conditions.
func judged(most int, l plan.Loop) plan.Plan {
	l.Max, l.StopWhen = most, []plan.Stop{{Expression: "false"}, {Judge: "judge"}}
	return devCycle(l)
}

// rows: DAG-14..17, DAG-33
func TestAJudgeLooksAfterTheExpression(t *testing.T) {
	p := newPlayer(t, judged(5, plan.Loop{}))
	p.eval = isTrue(func(machine.Evaluate) bool { return false })
	p.says = named(map[string]event.Outcome{
		"dev-cycle.0/judge": gave("Not yet.", `{"done":false,"reason":"no tests"}`),
		"dev-cycle.1/judge": gave("Fine.", `{"done":true,"reason":"tests pass"}`),
	})
	if o := p.play(); !o.OK {
		t.Errorf("%+v", o)
	}
	same(t, p.ids(), []string{
		"design", "dev-cycle.0.implement", "dev-cycle.0.review", "dev-cycle.0/judge", "dev-cycle.1.implement", "dev-cycle.1.review", "dev-cycle.1/judge", "ship",
	})
	var said []event.JudgeVerdict
	for _, e := range p.events {
		if d, is := e.Data.(event.JudgeVerdict); is {
			said = append(said, d)
		}
	}
	same(t, said, []event.JudgeVerdict{
		{Step: "dev-cycle", Number: 1, Verdict: event.VerdictNotDone, Reason: "no tests", Result: json.RawMessage(`{"done":false,"reason":"no tests"}`), Child: "run3"},
		{Step: "dev-cycle", Number: 2, Verdict: event.VerdictDone, Reason: "tests pass", Result: json.RawMessage(`{"done":true,"reason":"tests pass"}`), Child: "run6"},
	})
}

// rows: DAG-15
func TestWhereTheExpressionHoldsNoJudgeIsAsked(t *testing.T) {
	p := newPlayer(t, judged(5, plan.Loop{}))
	p.says, p.eval = named(nil), isTrue(func(machine.Evaluate) bool { return true })
	p.play()
	same(t, p.ids(), []string{"design", "dev-cycle.0.implement", "dev-cycle.0.review", "ship"})
}

// rows: DAG-34..37, DAG-77
func TestAJudgeWithoutAVerdictStopsAndFailsNothing(t *testing.T) {
	for name, glitch := range map[string]event.Outcome{
		"no call of the result tool": ok("Hard to say."),
		"a model error":              fails("overloaded"),
		"its turn limit":             {Status: event.StatusStopped, Reason: event.ReasonMaxCycles, Limit: "max_cycles", FinalOutput: "Hard to say."},
		"another schema":             gave("Hard to say.", `{"finished":true}`),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, judged(2, plan.Loop{}))
			p.eval = isTrue(func(machine.Evaluate) bool { return false })
			p.says = named(map[string]event.Outcome{"dev-cycle.0/judge": glitch, "dev-cycle.1/judge": gave("Fine.", `{"done":true}`)})
			if o := p.play(); !o.OK {
				t.Errorf("%+v", o)
			}
			if told := p.told("dev-cycle.1.implement"); glitch.FinalOutput != "" && !strings.Contains(told, "Hard to say.") {
				t.Errorf("the next iteration is not told what the judge said:\n%s", told)
			}
		})
	}
}

func TestAJudgeThatGivesNoVerdictTooOftenFailsTheStep(t *testing.T) {
	p := newPlayer(t, judged(9, plan.Loop{JudgeFailuresMax: 2}))
	p.eval = isTrue(func(machine.Evaluate) bool { return false })
	p.says = named(map[string]event.Outcome{"dev-cycle.1/judge": gave("No.", `{"done":false}`)})
	o := p.play()
	if o.Reason != event.ReasonJudgeUnavailable || o.Status != event.StatusFailed || o.Step != "dev-cycle" || strings.Count(p.story(), "verdict not_done") != 4 {
		t.Errorf("%+v\n%s", o, p.story())
	}
}

func TestEachJudgeOfAnIterationIsAChildOfItsOwn(t *testing.T) {
	p := newPlayer(t, single(plan.Loop{Max: 2, StopWhen: []plan.Stop{{Expression: "enough"}, {Judge: "strict"}, {Judge: "kind"}}}))
	p.eval = isTrue(func(machine.Evaluate) bool { return false })
	p.says = named(map[string]event.Outcome{"check.0/judge": gave("No.", `{"done":false}`), "check.0/judge/2": gave("Fine.", `{"done":true}`)})
	p.play()
	same(t, p.ids(), []string{"check.0", "check.0/judge", "check.0/judge/2"})
}

func TestAJudgeMaySayThatItIsImpossible(t *testing.T) {
	p := newPlayer(t, judged(9, plan.Loop{}))
	p.eval = isTrue(func(machine.Evaluate) bool { return false })
	p.says = named(map[string]event.Outcome{"dev-cycle.0/judge": gave("", `{"verdict":"impossible","reason":"there is no such API"}`)})
	if o := p.play(); o.Reason != event.ReasonImpossible || o.Status != event.StatusFailed || o.Error.Message != "there is no such API" {
		t.Errorf("%+v", o)
	}
}

func TestARegexIsSoughtInTheContentWhateverTheCase(t *testing.T) {
	p := newPlayer(t, single(plan.Loop{Max: 5, StopWhen: []plan.Stop{{Regex: `all \d+ tests pass`}}}))
	p.says = named(map[string]event.Outcome{"check.1": ok("So: All 12 tests PASS.")})
	if o := p.play(); !o.OK || len(p.begun) != 2 {
		t.Errorf("%+v", o)
	}
}

func TestAFailedIteration(t *testing.T) {
	for name, c := range map[string]struct {
		policy plan.OnIterationError
		ok     bool
		begun  int
	}{
		"fails the step":   {plan.IterationFails, false, 1},
		"may be gone past": {plan.IterationContinues, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, single(plan.Loop{Max: 3, OnError: c.policy}))
			p.says = named(map[string]event.Outcome{"check.0": fails("no key")})
			if o := p.play(); o.OK != c.ok || len(p.begun) != c.begun {
				t.Errorf("%+v\n%s", o, p.story())
			}
		})
	}
}

func TestARetryOfALoopBeginsAtItsFirstIteration(t *testing.T) {
	s := single(plan.Loop{Max: 3})
	s.Steps[0].Retries = 1
	p := newPlayer(t, s)
	p.says = named(map[string]event.Outcome{"check.1": fails("once")})
	if o := p.play(); !o.OK {
		t.Errorf("%+v", o)
	}
	same(t, p.ids(), []string{"check.0", "check.1", "check~2.0", "check~2.1", "check~2.2"})
	p.holds(`
started check 1
started check.0 1
completed check.0
iteration 1 of check
started check.1 1
failed check.1: model_error: once
iteration 2 of check
failed check: model_error: check.1: once
started check 2
started check.0 1
completed check.0
iteration 1 of check
started check.1 1
completed check.1
iteration 2 of check
started check.2 1
completed check.2
iteration 3 of check
completed check`)
}

func TestATimeoutBoundsALoopWithAllItsIterations(t *testing.T) {
	s := single(plan.Loop{Max: 100, Delay: 25 * time.Second})
	s.Steps[0].Timeout = time.Minute
	p := newPlayer(t, s)
	p.says = named(nil)
	o := p.play()
	if o.OK || len(p.begun) != 3 || !p.now.Equal(time.Unix(1060, 0)) || o.Error.Class != "timeout" || o.FinalOutput != "said by check.2" {
		t.Errorf("%+v at %s\n%s", o, p.now, p.story())
	}
}

// rows: DAG-2, DAG-39, DAG-47, DAG-49, DAG-50, DAG-51, DAG-65
func TestEachItemIsAnIterationAndThoseGoSideBySide(t *testing.T) {
	items := static(2)
	items.Static[1] = json.RawMessage(`"two"`)
	p := newPlayer(t, each(items))
	p.says, p.hold = named(nil), func(id string) bool { return id == "deploy-each[0].deploy" }
	p.play()
	same(t, p.ids(), []string{"list", "deploy-each[0].deploy", "deploy-each[1].deploy", "deploy-each[1].verify"})
	p.hold = nil
	o := p.play()
	if !o.OK || o.FinalOutput != "said by deploy-each[1].verify" || string(o.Result) != `{"items":[{"status":"completed"},{"status":"completed"}]}` {
		t.Errorf("%+v %s", o, o.Result)
	}
}

// rows: DAG-47, DAG-48
func TestTheLeastOfAllBoundsHoldsForItems(t *testing.T) {
	for name, c := range map[string]struct{ plan, run, items, most int }{
		"none": {0, 0, 0, 30}, "the loop's": {0, 0, 4, 4}, "the plan's": {3, 0, 4, 3}, "the run's": {3, 2, 4, 2},
		"the loop's below the run's": {0, 5, 3, 3}, "the loop's below the plan's": {5, 0, 3, 3}, "the loop's below both": {6, 5, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := each(static(30), step("work"))
			p.Concurrency, p.Steps[1].Loop.Items.Concurrency = c.plan, c.items
			play := newPlayerOf(t, config(p, c.run))
			play.says = named(nil)
			if o := play.play(); !o.OK || play.most != c.most {
				t.Errorf("%d at once, want %d", play.most, c.most)
			}
		})
	}
}

func TestOneAtATimeIsInOrder(t *testing.T) {
	p := newPlayerOf(t, config(each(static(3)), 1))
	p.says = named(nil)
	p.play()
	same(t, p.ids(), []string{
		"list", "deploy-each[0].deploy", "deploy-each[0].verify", "deploy-each[1].deploy", "deploy-each[1].verify", "deploy-each[2].deploy", "deploy-each[2].verify",
	})
}

// rows: DAG-40..42
func TestItemsByAnExpression(t *testing.T) {
	for name, c := range map[string]struct {
		gives  event.ConditionEvaluated
		begun  int
		reason event.Reason
	}{
		"an array":      {event.ConditionEvaluated{Value: json.RawMessage(`["a", {"b": 1}, 3]`)}, 4, event.ReasonFinalAnswer},
		"an empty one":  {event.ConditionEvaluated{Value: json.RawMessage(`[]`)}, 1, event.ReasonFinalAnswer},
		"no array":      {event.ConditionEvaluated{Value: json.RawMessage(`{"a": 1}`)}, 1, event.ReasonConditionError},
		"null":          {event.ConditionEvaluated{Value: json.RawMessage(`null`)}, 1, event.ReasonConditionError},
		"an error":      {event.ConditionEvaluated{Error: "no such key: services", ErrorType: "missing_key"}, 1, event.ReasonConditionError},
		"more than may": {event.ConditionEvaluated{Value: json.RawMessage(`[1,2,3,4,5]`)}, 1, event.ReasonStepFailed},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, each(&plan.Items{Expression: "steps.list.result.services", Max: 4}, step("work")))
			p.says = named(nil)
			evaluated := 0
			p.eval = func(machine.Evaluate) event.ConditionEvaluated { evaluated++; return c.gives }
			if o := p.play(); o.Reason != c.reason || len(p.begun) != c.begun || evaluated != 1 {
				t.Errorf("%+v, %v, evaluated %d times", o, p.ids(), evaluated)
			}
		})
	}
}

func TestAFailedItem(t *testing.T) {
	for name, c := range map[string]struct {
		items   plan.Items
		ok      bool
		begun   int
		message string
		content string
	}{
		"starts no other":       {plan.Items{}, false, 3, "deploy-each[1].work: no key", ""},
		"fails the step at end": {plan.Items{OnError: plan.Collect}, false, 5, "item 1: deploy-each[1].work: no key", ""},
		"is left out":           {plan.Items{OnError: plan.Continue}, true, 5, "", "said by deploy-each[3].work"},
		"is one too many":       {plan.Items{OnError: plan.Continue, MinSuccess: 4}, false, 5, "3 of 4 items succeeded, and at least 4 must", ""},
		"in hundred":            {plan.Items{OnError: plan.Continue, MinSuccessPercent: 75}, true, 5, "", ""},
		"in hundred, too many":  {plan.Items{OnError: plan.Continue, MinSuccessPercent: 76}, false, 5, "3 of 4 items succeeded, and at least 4 must", ""},
	} {
		t.Run(name, func(t *testing.T) {
			items := c.items
			items.Static, items.Concurrency = static(4).Static, 1
			p := newPlayer(t, each(&items, step("work")))
			p.says = named(map[string]event.Outcome{"deploy-each[1].work": fails("no key")})
			o := p.play()
			if o.OK != c.ok || len(p.begun) != c.begun || !c.ok && o.Error.Message != c.message || c.content != "" && o.FinalOutput != c.content {
				t.Errorf("%+v %+v, %v", o, o.Error, p.ids())
			}
			if !strings.Contains(string(o.Result), `{"error":"deploy-each[1].work: no key","status":"failed"}`) {
				t.Errorf("%s", o.Result)
			}
		})
	}
}

// When an item fails, the active ones run to their ends.
func TestItemsUnderWayFinishWhenOneFails(t *testing.T) {
	items := static(6)
	items.Concurrency = 2
	p := newPlayer(t, each(items, step("work")))
	p.says = named(map[string]event.Outcome{"deploy-each[0].work": fails("no key")})
	if o := p.play(); o.OK || len(p.begun) != 3 || !strings.Contains(p.story(), "completed deploy-each[1].work") {
		t.Errorf("%+v\n%s", o, p.story())
	}
}

// rows: DAG-58..60
func TestWhatTheContentOfALoopIsMadeOf(t *testing.T) {
	for name, c := range map[string]struct {
		plan plan.Plan
		want string
	}{
		"the last":                 {single(plan.Loop{Max: 2}), "said by check.1"},
		"all":                      {single(plan.Loop{Max: 2, Output: plan.Cumulative}), "said by check.0\n\n---\n\nsaid by check.1"},
		"the last item":            {each(static(2), step("work")), "said by deploy-each[1].work"},
		"all items in their order": {cumulative(each(static(2), step("work"))), "said by deploy-each[0].work\n\n---\n\nsaid by deploy-each[1].work"},
		"all with the judge": {single(plan.Loop{Max: 2, Output: plan.Cumulative, StopWhen: []plan.Stop{{Judge: "judge"}}}),
			"said by check.0\n\n### Judge\n\nNo.\n\nno tests\n\n---\n\nsaid by check.1\n\n### Judge\n\nYes."},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, c.plan)
			p.says = named(map[string]event.Outcome{"check.0/judge": gave("No.", `{"done":false,"reason":"no tests"}`), "check.1/judge": gave("Yes.", `{"done":true}`)})
			if o := p.play(); o.FinalOutput != c.want {
				t.Errorf("%q", o.FinalOutput)
			}
		})
	}
}

func cumulative(p plan.Plan) plan.Plan {
	p.Steps[1].Loop.Output = plan.Cumulative
	return p
}

// An expression that fails, for example because a key is missing, fails the loop's
// step.
func TestAnExpressionThatFailsFailsTheLoop(t *testing.T) {
	p := newPlayer(t, single(plan.Loop{Max: 2, StopWhen: []plan.Stop{{Expression: "result.x"}}}))
	p.says = named(nil)
	p.eval = func(machine.Evaluate) event.ConditionEvaluated {
		return event.ConditionEvaluated{Error: "no such key: x", ErrorType: "missing_key"}
	}
	if o := p.play(); o.Reason != event.ReasonConditionError || o.Step != "check" {
		t.Errorf("%+v", o)
	}
}

// A loop may contain a loop.
func TestALoopInALoop(t *testing.T) {
	inner := plan.Step{ID: "inner", Loop: &plan.Loop{Max: 2, Body: plan.Plan{Steps: []plan.Step{step("x")}}}}
	p := newPlayer(t, each(static(2), inner))
	p.says = named(nil)
	if o := p.play(); !o.OK {
		t.Errorf("%+v", o)
	}
	same(t, p.ids(), []string{"list", "deploy-each[0].inner.0.x", "deploy-each[1].inner.0.x", "deploy-each[0].inner.1.x", "deploy-each[1].inner.1.x"})
}

// Steps inherit the taint of the children whose results they get.
func TestTaintTravels(t *testing.T) {
	secret := event.Taint{Private: &event.TaintSource{Run: "run0", Tool: "fs.read"}}
	web := event.Taint{Untrusted: &event.TaintSource{Run: "run3", Tool: "web.fetch"}}
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{
		step("read"), step("free"), step("after", "read"),
		{ID: "cycle", DependsOn: []string{"free"}, Loop: &plan.Loop{Max: 2, StopWhen: []plan.Stop{{Judge: "judge"}}, OnLimit: plan.LimitIsOK, Body: plan.Plan{Steps: []plan.Step{step("x")}}}},
		step("last", "cycle"),
	}})
	p.says = func(a machine.StartChild) (event.Outcome, event.Taint) {
		switch a.ID {
		case "read":
			return ok("it"), secret
		case "cycle.0/judge":
			return ok("no"), web
		}
		return ok("it"), a.Taint
	}
	p.play()
	none := event.Taint{}
	for _, a := range p.begun {
		want := map[string]event.Taint{
			"read": none, "free": none, "after": secret, "cycle.0.x": none, "cycle.0/judge": none, "cycle.1.x": web, "cycle.1/judge": web, "last": web,
		}[a.ID]
		same(t, a.Taint, want)
	}
	same(t, p.m.State().Taint, event.Taint{Private: secret.Private, Untrusted: web.Untrusted})
}

// rows: DAG-58, DAG-61..63
func TestAnswersOfAllRoundsAreUncutWithinTheBound(t *testing.T) {
	for name, c := range map[string]struct {
		output plan.Output
		passes int
		told   int
	}{
		"the last":       {plan.Last, 3, flow.MostOfOne},
		"all":            {plan.Cumulative, 3, 60_000},
		"all, too much":  {plan.Cumulative, 9, flow.MostOfAll},
		"all of an item": {plan.Cumulative, -3, 60_000},
	} {
		t.Run(name, func(t *testing.T) {
			p := single(plan.Loop{Max: c.passes, Output: c.output})
			if c.passes < 0 {
				p = single(plan.Loop{Items: static(-c.passes), Output: c.output})
			}
			p.Steps = append(p.Steps, step("after", "check"))
			play := newPlayer(t, p)
			play.says = func(a machine.StartChild) (event.Outcome, event.Taint) {
				return ok(strings.Repeat("x", 20_000-len(a.ID)) + a.ID), event.Taint{}
			}
			play.play()
			if n := strings.Count(play.told("after"), "x"); n < c.told-200 || n > c.told {
				t.Errorf("it is told %d bytes, want about %d", n, c.told)
			}
		})
	}
}

func TestTheResultsOfItemsAreInTheirOrder(t *testing.T) {
	p := newPlayer(t, each(static(3), step("work")))
	p.says = named(map[string]event.Outcome{"deploy-each[0].work": gave("a", `{"n":0}`), "deploy-each[2].work": gave("c", `{"n":2}`)})
	p.hold = func(id string) bool { return id == "deploy-each[0].work" }
	p.play()
	p.hold = nil
	if o := p.play(); string(o.Result) != `{"items":[{"result":{"n":0},"status":"completed"},{"status":"completed"},{"result":{"n":2},"status":"completed"}]}` {
		t.Errorf("%s", o.Result)
	}
}
