package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// rows: RON-32
func TestTheRingOfALoopFillsAsItsIterationsEnd(t *testing.T) {
	s := stepsOf(t, plan.Plan{Refine: true, Steps: []plan.Step{{ID: "loop", Loop: &plan.Loop{Max: 10, Body: plan.Plan{Steps: []plan.Step{{Agent: &plan.Agent{Name: "a"}}}}}}}})
	seq := int64(1)
	hear := func(d event.Data) {
		seq++
		s.Add(&event.Event{Seq: seq, Data: d})
	}
	hear(event.StepStarted{Step: "loop", Attempt: 1})
	for n, want := range []string{"○ 0/10", "◔ 1/10", "◔ 2/10", "◔ 3/10", "◔ 4/10", "◑ 5/10", "◑ 6/10", "◑ 7/10", "◕ 8/10", "◕ 9/10", "● 10/10"} {
		if n > 0 {
			step, child := fmt.Sprint("loop.", n-1), fmt.Sprint("c", n)
			hear(event.ChildStarted{Child: child, Step: step, ID: step})
			hear(event.ChildFinished{Child: child, Outcome: event.Outcome{Reason: event.ReasonFinalAnswer, OK: true}})
			hear(event.Iteration{Step: "loop", Index: n - 1, Number: n, MaxIterations: 10, Exit: event.ReasonFinalAnswer})
			hear(event.Progress{Step: "loop", Number: n, Learning: fmt.Sprintf("learned %d\nand more", n)})
			want += fmt.Sprintf("  learned %d", n)
		}
		if got := told(liveSteps(&s.Steps, 20, ink{}, new(activity))); got != want {
			t.Errorf("after %d iterations the line is %q, want %q", n, got, want)
		}
	}
	hear(event.Progress{Step: "loop", Number: 10, Learning: strings.Repeat("long ", 100)})
	if got := told(liveSteps(&s.Steps, 20, ink{}, new(activity))); columns(got) > 120 {
		t.Errorf("a learning is not cut: %q", got)
	}
}
