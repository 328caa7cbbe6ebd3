package plan_test

import (
	"slices"
	"testing"

	"github.com/pawlrun/pawl/internal/rules/eval"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

func TestAReasonToStopIsCalledByWhatItLooksAt(t *testing.T) {
	for want, s := range map[string]plan.Stop{
		"cel": {Expression: "true"}, "rubric": {Eval: &eval.Evaluator{Kind: eval.Rubric}, Judge: "jury"}, "judge": {Judge: "critic"},
		"regex": {Regex: "x"}, "human": {Human: &plan.Human{}}, "command": {Command: &plan.Command{Argv: []string{"true"}}},
	} {
		if got := s.Kind(); got != want {
			t.Errorf("%s instead of %s", got, want)
		}
	}
}

func TestTheLargerDemandSaysHowManyItemsMustSucceed(t *testing.T) {
	for _, tt := range []struct {
		least   int
		percent float64
		of      int
		want    int
	}{{0, 0, 7, 0}, {3, 0, 7, 3}, {0, 50, 7, 4}, {0, 50, 8, 4}, {5, 50, 8, 5}, {3, 50, 8, 4}, {0, 100, 7, 7}} {
		items := plan.Items{MinSuccess: tt.least, MinSuccessPercent: tt.percent}
		if got := items.Least(tt.of); got != tt.want {
			t.Errorf("%d and %v %% of %d: %d", tt.least, tt.percent, tt.of, got)
		}
	}
}

func TestAGoalLooksAtItsValidationBeforeWhatEndsIt(t *testing.T) {
	l := plan.Loop{StopWhen: []plan.Stop{{Judge: "critic"}}}
	kinds := func() (all []string) {
		for _, s := range l.Checks() {
			all = append(all, s.Kind())
		}
		return all
	}
	if got := kinds(); !slices.Equal(got, []string{"judge"}) {
		t.Errorf("without a goal: %v", got)
	}
	l.Goal = &plan.Goal{Validation: []plan.Stop{{Command: &plan.Command{}}, {Expression: "true"}}}
	if got := kinds(); !slices.Equal(got, []string{"command", "cel", "judge"}) {
		t.Errorf("with one: %v", got)
	}
}

// What has a command may write the workspace, wherever the command stands.
func TestAPlanHasTheCommandsOfAllThatIsInIt(t *testing.T) {
	command := plan.Step{ID: "c", Command: &plan.Command{Argv: []string{"make"}}}
	agent := plan.Step{ID: "a", Agent: &plan.Agent{Name: "worker"}}
	of := func(s ...plan.Step) plan.Plan { return plan.Plan{Steps: s} }
	with, without := of(agent, command), of(agent)
	stops := []plan.Stop{{Judge: "critic"}, {Command: &plan.Command{Argv: []string{"make"}}}}
	for name, tt := range map[string]struct {
		step plan.Step
		want bool
	}{
		"an agent":                    {agent, false},
		"a command":                   {command, true},
		"a graph with one":            {plan.Step{Plan: &with}, true},
		"a graph without":             {plan.Step{Plan: &without}, false},
		"a loop with one":             {plan.Step{Loop: &plan.Loop{Body: with}}, true},
		"a loop without":              {plan.Step{Loop: &plan.Loop{Body: without, StopWhen: stops[:1]}}, false},
		"a loop that one ends":        {plan.Step{Loop: &plan.Loop{Body: without, StopWhen: stops}}, true},
		"a goal that one is to prove": {plan.Step{Loop: &plan.Loop{Body: without, StopWhen: stops[:1], Goal: &plan.Goal{Validation: stops}}}, true},
	} {
		if p := of(agent, tt.step); p.HasCommands() != tt.want {
			t.Errorf("%s: %t", name, p.HasCommands())
		}
	}
}

func TestEachStepIsVisitedInItsPlace(t *testing.T) {
	var ids []string
	ided().Each(func(s *plan.Step) { ids = append(ids, s.ID) })
	if want := []string{"a", "sub", "b", "again", "b", "each", "c", "b", "self", ""}; !slices.Equal(ids, want) {
		t.Errorf("%q", ids)
	}
}
