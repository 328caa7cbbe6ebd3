package flow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

func member(name string, after ...string) plan.Step {
	return plan.Step{ID: name, DependsOn: after, Agent: &plan.Agent{Name: name}}
}

// holdsAll checks which texts a task contains.
func holdsAll(t *testing.T, task string, with, without []string) {
	t.Helper()
	for _, text := range with {
		if !strings.Contains(task, text) {
			t.Errorf("%q is not in\n%s", text, task)
		}
	}
	for _, text := range without {
		if strings.Contains(task, text) {
			t.Errorf("%q is in\n%s", text, task)
		}
	}
}

func TestTeamMemberGetsInputAndEarlierAnswers(t *testing.T) {
	p := newPlayer(t, plan.Plan{Team: true, Steps: []plan.Step{member("a"), member("b", "a"), member("c", "a", "b")}})
	p.says = named(nil)
	o := p.play()
	holdsAll(t, p.told("a"), []string{"Build it."}, []string{"said by"})
	holdsAll(t, p.told("b"), []string{"## Task\nBuild it.", "said by a"}, nil)
	holdsAll(t, p.told("c"), []string{"## Task\nBuild it.", "said by a", "said by b"}, nil)
	if o.FinalOutput != "said by c" {
		t.Errorf("%q", o.FinalOutput)
	}
}

// Each round of a debate gets the outputs of the previous round, and the aggregator
// those of all rounds.
func TestADebateTellsEachWhatAllSaidInTheRoundBefore(t *testing.T) {
	p := newPlayer(t, plan.Plan{Team: true, Steps: []plan.Step{
		{ID: "rounds", Loop: &plan.Loop{Max: 3, OnLimit: plan.LimitIsOK, Output: plan.Cumulative, Body: plan.Plan{Steps: []plan.Step{member("a"), member("b")}}}},
		member("chair", "rounds"),
	}})
	p.says = named(nil)
	o := p.play()
	holdsAll(t, p.told("rounds.0.a"), []string{"## Task\nBuild it."}, []string{"said by"})
	holdsAll(t, p.told("rounds.2.a"), []string{"## Task\nBuild it.", "## Previous round: a\n", "said by rounds.1.a", "## Previous round: b\n", "said by rounds.1.b"}, []string{"said by rounds.0"})
	holdsAll(t, p.told("chair"), []string{"## Task\nBuild it.", "said by rounds.0.a", "said by rounds.2.a", "said by rounds.2.b"}, nil)
	if o.FinalOutput != "said by chair" || p.most != 2 {
		t.Errorf("%q, %d at once", o.FinalOutput, p.most)
	}
}

func TestWhatEndsTheRoundsOfATeamSeesInputRoundAndPrevious(t *testing.T) {
	p := newPlayer(t, plan.Plan{Team: true, Steps: []plan.Step{{ID: "rounds", Loop: &plan.Loop{
		Max: 5, OnLimit: plan.LimitIsOK, StopWhen: []plan.Stop{{Expression: "enough"}}, Body: plan.Plan{Steps: []plan.Step{member("a"), member("b", "a")}},
	}}}})
	p.says = named(map[string]event.Outcome{"rounds.1.b": gave("fine", `{"done":true}`)})
	p.eval = isTrue(func(e machine.Evaluate) bool {
		var v struct {
			Input    string
			Round    int
			Previous struct {
				Content, Status string
				Result          struct{ Done bool }
			}
		}
		if err := json.Unmarshal(e.Variables, &v); err != nil {
			t.Fatal(err)
		}
		return v.Input == "Build it." && v.Round == 2 && v.Previous.Content == "fine" && v.Previous.Status == "completed" && v.Previous.Result.Done
	})
	o := p.play()
	same(t, p.ids(), []string{"rounds.0.a", "rounds.0.b", "rounds.1.a", "rounds.1.b"})
	holdsAll(t, p.told("rounds.1.a"), []string{"said by rounds.0.a", "said by rounds.0.b"}, nil)
	holdsAll(t, p.told("rounds.1.b"), []string{"said by rounds.0.a", "said by rounds.0.b", "said by rounds.1.a"}, nil)
	if !o.OK || o.FinalOutput != "fine" {
		t.Errorf("%+v", o)
	}
}

// The output of the last steps is the plan's. A step whose dependents were all skipped
// counts as a last step.
func TestAStepBehindWhichAllWereSkippedIsALastOne(t *testing.T) {
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{step("a"), conditional("b", "no", "a"), conditional("c", "no", "a", "b")}})
	p.says, p.eval = named(nil), isTrue(func(machine.Evaluate) bool { return false })
	if o := p.play(); !o.OK || o.FinalOutput != "said by a" {
		t.Errorf("%+v", o)
	}
}
