package flow_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// choosing returns a plan with a step and a conditional step after it.
func choosing() plan.Plan {
	chosen := step("chosen", "first")
	chosen.Condition = "choose"
	return plan.Plan{Steps: []plan.Step{step("first"), chosen}}
}

// A condition in a loop is evaluated in each iteration, over the steps of that
// iteration and the result of the previous one.
//
// rows: DAG-24, DAG-52, DAG-54
func TestAConditionInALoopIsAboutItsIteration(t *testing.T) {
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{{ID: "again", Loop: &plan.Loop{Max: 3, Body: choosing()}}}})
	p.says = named(map[string]event.Outcome{"again.1.chosen": gave("chosen", `{"n":1}`)})
	var seen []string
	p.eval = isTrue(func(a machine.Evaluate) bool {
		seen = append(seen, string(a.Variables))
		return strings.Contains(string(a.Variables), "said by again.1.first")
	})
	p.play()
	same(t, p.ids(), []string{"again.0.first", "again.1.first", "again.1.chosen", "again.2.first"})
	same(t, seen, []string{
		`{"steps":{"first":{"content":"said by again.0.first","status":"completed"}},"iteration":0,"content":""}`,
		`{"steps":{"first":{"content":"said by again.1.first","status":"completed"}},"iteration":1,"content":"said by again.0.first","status":"completed"}`,
		`{"steps":{"first":{"content":"said by again.2.first","status":"completed"}},"iteration":2,"content":"chosen","result":{"n":1},"status":"completed"}`,
	})
}

// rows: DAG-51
func TestAConditionSeesTheItemAndItsIndex(t *testing.T) {
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{{ID: "each", Loop: &plan.Loop{Items: static(3), Body: choosing()}}}})
	p.says = named(nil)
	var seen []string
	p.eval = isTrue(func(a machine.Evaluate) bool {
		var v struct {
			Item  json.RawMessage
			Index int
		}
		if err := json.Unmarshal(a.Variables, &v); err != nil {
			t.Error(err)
		}
		seen = append(seen, fmt.Sprintf("%d %s", v.Index, v.Item))
		return v.Index == 1
	})
	p.play()
	same(t, seen, []string{`0 {"n":0}`, `1 {"n":1}`, `2 {"n":2}`})
	if ids := p.ids(); len(ids) != 4 || ids[3] != "each[1].chosen" {
		t.Errorf("%v", ids)
	}
}

// rows: DAG-52, DAG-53
func TestUntilOfAStepItselfSeesEachIteration(t *testing.T) {
	p := newPlayer(t, single(plan.Loop{Max: 3, OnLimit: plan.LimitIsOK, StopWhen: []plan.Stop{{Expression: "enough"}}}))
	p.says = named(map[string]event.Outcome{"check.1": gave("second", `{"n":2}`)})
	var seen []string
	p.eval = isTrue(func(a machine.Evaluate) bool { seen = append(seen, string(a.Variables)); return false })
	p.play()
	same(t, seen, []string{
		`{"steps":{},"iteration":0,"content":"said by check.0","status":"completed"}`,
		`{"steps":{},"iteration":1,"content":"second","result":{"n":2},"status":"completed"}`,
		`{"steps":{},"iteration":2,"content":"said by check.2","status":"completed"}`,
	})
}

// rows: RON-8, RON-10
func TestTheLogHasItsEntryBeforeTheCriterionIsLookedAt(t *testing.T) {
	p := newPlayer(t, refinement(plan.Loop{Max: 2, OnLimit: plan.LimitIsOK, StopWhen: []plan.Stop{{Regex: "never"}}}))
	p.says = attempts
	p.play()
	var order []string
	for _, e := range p.events {
		switch d := e.Data.(type) {
		case event.Progress:
			order = append(order, fmt.Sprint("log ", d.Number))
		case event.ConditionEvaluated:
			order = append(order, "criterion of "+d.ID)
		}
	}
	same(t, order, []string{"log 1", "criterion of loop.0/0", "log 2", "criterion of loop.1/0"})
}

// At each checkpoint, the current spending and the log answer the questions that need
// no model.
//
// rows: HAR-71, HAR-72, HAR-73, HAR-75
func TestEachCheckpointSaysTheBudgetAndTheLogOfItsMoment(t *testing.T) {
	g := goalState(plan.Goal{Every: 2}, plan.Loop{Max: 5, Carry: plan.Carry{Log: &plan.Log{Chars: 10, MaxEntries: 3}}}, command("check"))
	p := newPlayerOf(t, flow.Config{Plan: g, Limits: budget.Limits{MaxTotalCost: 2}})
	p.eval = isTrue(func(machine.Evaluate) bool { return true })
	looks := 0
	p.exec = func(machine.RunCommand) event.CommandFinished { looks++; return exits(looks, "") }
	p.says = named(map[string]event.Outcome{"goal/checkpoint/1": reviewed("not_done", "no"), "goal/checkpoint/2": reviewed("not_done", "no")})
	p.play()
	var said [][]string
	for _, d := range checkpoints(p) {
		said = append(said, []string{d.Questions[1].Answer, d.Questions[2].Answer, d.Questions[3].Answer, d.Questions[5].Answer})
	}
	same(t, said, [][]string{{
		"`true` holds; `check` does not hold (it exited with 2)", "yes: iteration 2 of 5, max_total_cost 0.0000 of 2.00", "no: `check` does not hold (it exited with 2)",
		"no: the next iteration begins afresh, and all 2 entries of the log are handed on",
	}, {
		"`true` holds; `check` does not hold (it exited with 4)", "yes: iteration 4 of 5, max_total_cost 0.0000 of 2.00", "no: `check` does not hold (it exited with 4)",
		"yes: the log has 4 entries, of which the newest 3 are handed on; the next iteration begins afresh",
	}})
}

// The objective, the done condition, the budget, the checkpoints, the plan, the log,
// the validation and the stop rules survive each restart.
//
// rows: HAR-69
func TestAllEightFieldsOfAGoalOutliveRestarts(t *testing.T) {
	g := goalState(plan.Goal{Every: 1, Steps: []string{"find it"}, Validation: []plan.Stop{{Expression: "true"}}}, plan.Loop{Max: 3}, command("check"))
	p := newPlayerOf(t, flow.Config{Plan: g, Limits: budget.Limits{MaxTotalCost: 2}})
	p.eval = isTrue(func(machine.Evaluate) bool { return true })
	p.exec = func(machine.RunCommand) event.CommandFinished { return exits(1, "") }
	p.says = named(map[string]event.Outcome{
		"goal/checkpoint/1": gave("", `{"verdict":"blocked_on_human","objective":"it is","human":"Which port?"}`), // keeps the plan of the file
		"goal/checkpoint/2": reviewed("blocked_on_human", "Which host?"),
	})
	for i := 1; i <= 2; i++ {
		p.play()
		if s := p.m.State(); s.Phase != machine.Parked {
			t.Fatalf("before restart %d it is %+v", i, s)
		}
		p.m = p.again()
		p.apply(event.InputReceived{Text: fmt.Sprint("answer ", i), By: "ann"})
		p.apply(event.RunResumed{})
	}
	if o := p.play(); o.Reason != event.ReasonMaxIterations || o.Iterations != 3 {
		t.Errorf("by its stop rules it ends as %+v", o)
	}
	if told := p.told("goal.1"); !strings.Contains(told, "## Plan\n1. find it\n") {
		t.Errorf("of the plan of its file is not told:\n%s", told)
	}
	told := p.told("goal.2")
	for field, part := range map[string]string{
		"objective": "## Objective\nMake it green.", "done": "## Done when all of this holds\n- the tests pass", "validation": "## Checked after each iteration\n- `true`",
		"plan": "1. mend it", "first entry": "Iteration 1", "second entry": "Iteration 2", "first answer": "- answer 1", "second answer": "- answer 2", "stop rules": "Iteration 3 of 3",
	} {
		if !strings.Contains(told, part) {
			t.Errorf("of its %s is not told %q:\n%s", field, part, told)
		}
	}
	points := checkpoints(p)
	numbers := []int{points[0].Number, points[len(points)-1].Number}
	if len(points) != 2 || !slices.Equal(numbers, []int{1, 2}) || !strings.Contains(points[1].Questions[2].Answer, "max_total_cost 0.0000 of 2.00") {
		t.Errorf("its checkpoints are %+v", points)
	}
}
