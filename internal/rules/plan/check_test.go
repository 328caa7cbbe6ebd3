package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/rules/plan"
)

func step(id string, after ...string) plan.Step {
	return plan.Step{ID: id, DependsOn: after, Agent: &plan.Agent{Name: "worker"}}
}

func TestAPlanThatCannotBeCarriedOutIsRefused(t *testing.T) {
	loop := func(l plan.Loop) plan.Plan { return plan.Plan{Steps: []plan.Step{{ID: "l", Loop: &l}}} }
	stops, log, goal := []plan.Stop{{Judge: "critic"}}, plan.Carry{Log: &plan.Log{}}, &plan.Goal{Reviewer: "critic"}
	body := plan.Plan{Steps: []plan.Step{step("x")}}
	for name, c := range map[string]struct {
		plan plan.Plan
		want string
	}{
		"a good one":              {plan.Plan{Steps: []plan.Step{step("a"), step("b", "a"), {ID: "l", Loop: &plan.Loop{Max: 2, Body: body}}}}, ""},
		"no step":                 {plan.Plan{}, "steps: there is none"},
		"an id twice":             {plan.Plan{Steps: []plan.Step{step("a"), step("a")}}, `steps[1]: the id "a" is another step's too`},
		"an unknown dependency":   {plan.Plan{Steps: []plan.Step{step("a", "b")}}, `steps[0]: it depends on "b", which is no step of the same plan`},
		"a cycle":                 {plan.Plan{Steps: []plan.Step{step("a", "c"), step("b", "a"), step("c", "b")}}, "steps[0]: it depends on itself, through others"},
		"nothing to do":           {plan.Plan{Steps: []plan.Step{{ID: "a"}}}, "steps[0]: it says 0 things to do instead of one"},
		"below":                   {loop(plan.Loop{Max: 1, Body: plan.Plan{Steps: []plan.Step{step("x", "a")}}}), `steps[0].loop.body.steps[0]: it depends on "a"`},
		"items with a cap":        {loop(plan.Loop{Max: 1, Items: &plan.Items{}, Body: body}), "steps[0].loop.items: a loop over items has no cap"},
		"items with a delay":      {loop(plan.Loop{Delay: 1, Items: &plan.Items{}, Body: body}), "steps[0].loop.items: a loop over items has no cap"},
		"items with an end":       {loop(plan.Loop{StopWhen: stops, Items: &plan.Items{}, Body: body}), "steps[0].loop.items: a loop over items has no cap"},
		"items":                   {loop(plan.Loop{Items: &plan.Items{}, Body: body}), ""},
		"in a plan in a plan":     {plan.Plan{Steps: []plan.Step{step("x"), {ID: "p", Plan: &plan.Plan{}}}}, "steps[1].plan.steps: there is none"},
		"in a plan of a run":      {plan.Plan{Steps: []plan.Step{step("x")}, Runs: map[string]plan.Inner{"r": {}}}, "runs[r].steps: there is none"},
		"a goal":                  {loop(plan.Loop{Max: 1, Goal: goal, StopWhen: stops, Carry: log, Body: body}), ""},
		"a goal over items":       {loop(plan.Loop{Goal: goal, StopWhen: stops, Carry: log, Items: &plan.Items{}, Body: body}), "steps[0].loop.goal: a goal has no items"},
		"a goal without an end":   {loop(plan.Loop{Max: 1, Goal: goal, Carry: log, Body: body}), "steps[0].loop.goal: a goal has no items"},
		"a goal without a log":    {loop(plan.Loop{Max: 1, Goal: goal, StopWhen: stops, Body: body}), "steps[0].loop.goal: a goal has no items"},
		"a goal nobody reviews":   {loop(plan.Loop{Max: 1, Goal: &plan.Goal{}, StopWhen: stops, Carry: log, Body: body}), "steps[0].loop.goal: a goal has no items"},
		"a goal of nothing":       {loop(plan.Loop{Max: 1, Goal: &plan.Goal{}, Body: body}), "steps[0].loop.goal: a goal has no items"},
		"a timeout of iterations": {loop(plan.Loop{Max: 1, Body: plan.Plan{Timeout: time.Second, Steps: body.Steps}}), "an iteration has no timeout"},
		"itself, twice":           {loop(plan.Loop{Max: 1, Single: true, Body: plan.Plan{Steps: []plan.Step{step("x"), step("y")}}}), "has one step, not 2"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.plan.Check()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v", err)
			}
		})
	}
}
