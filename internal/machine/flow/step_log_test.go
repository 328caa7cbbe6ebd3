package flow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// The loop of a step keeps a log like that of an agent. Its agent gets the log together
// with its instructions and the results of its dependencies.
func TestALoopOfAStepKeepsALog(t *testing.T) {
	instructed := func(id string, after ...string) plan.Step {
		return plan.Step{ID: id, DependsOn: after, Agent: &plan.Agent{Name: "worker", Instructions: "Write the chapter."}}
	}
	for name, body := range map[string]plan.Loop{
		"the step itself":   {Single: true, Body: plan.Plan{Steps: []plan.Step{instructed("")}}},
		"steps of the loop": {Body: plan.Plan{Steps: []plan.Step{instructed("write")}}},
	} {
		t.Run(name, func(t *testing.T) {
			body.Max, body.StopWhen = 3, []plan.Stop{{Regex: "attempt 2"}}
			body.Carry = plan.Carry{Log: &plan.Log{Chars: 9, MaxEntries: 1}}
			p := newPlayer(t, plan.Plan{Steps: []plan.Step{{ID: "plan", Agent: &plan.Agent{Name: "planner"}}, {ID: "loop", DependsOn: []string{"plan"}, Loop: &body}}})
			n := 0
			p.says = func(a machine.StartChild) (event.Outcome, event.Taint) {
				if a.ID == "plan" {
					return event.Outcome{Status: event.StatusCompleted, OK: true, FinalOutput: "Three goats."}, event.Taint{}
				}
				text := fmt.Sprintf("attempt %d and a long tail", n)
				n++
				return event.Outcome{Status: event.StatusCompleted, OK: true, FinalOutput: text}, event.Taint{}
			}
			if o := p.play(); !o.Completed || n != 3 || o.FinalOutput != "attempt 2 and a long tail" {
				t.Fatalf("after %d iterations: %+v", n, o)
			}
			for i := range 3 {
				id := fmt.Sprintf("loop.%d", i)
				if !body.Single {
					id += ".write"
				}
				told := p.told(id)
				for text, wanted := range map[string]bool{
					"Write the chapter.": true, "Three goats.": true, "Previous iteration": false, "long tail": false,
					"## Progress Log": i > 0, fmt.Sprintf("Iteration %d of 3", i+1): i > 0,
					"attempt 0": i == 1, "attempt 1": i == 2, "(The oldest 1 entries are left out.)": i == 2,
				} {
					if strings.Contains(told, text) != wanted {
						t.Errorf("iteration %d, %q: want %v in\n%s", i, text, wanted, told)
					}
				}
			}
		})
	}
}
