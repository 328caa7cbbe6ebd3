package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// Only its program resumes such a run, but any process with the journal may send it
// what it waits for.
func TestThePageOfAProgramsRunSaysWhatItWaitsFor(t *testing.T) {
	for want, parked := range map[string]event.RunParked{
		"continue  pawl runs budget r1 max_tool_calls 4, then in the program ": {Reason: event.ParkInput, Limit: "max_tool_calls", AtLeast: 4},
		"continue  pawl runs input r1 -, then in the program ":                 {Reason: event.ParkInput},
		"continue  in the program ":                                            {Reason: event.ParkInterrupted},
	} {
		p := page{RunStatus: control.RunStatus{Run: journal.Run{ID: "r1"}}, origin: origin{ofProgram: true}, Parked: &parked}
		var b strings.Builder
		if p.head(&b, "pawl"); !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestThePageOfARunNamesItsChildren(t *testing.T) {
	usage := &llm.Usage{Input: 100, Output: 10}
	events := []event.Data{
		event.RunStarted{}, event.CycleStart{Cycle: 1},
		event.ModelResponse{Usage: llm.Usage{Input: 7, Output: 1}, Cost: llm.Cost{USD: 1, Priced: true}},
		event.ChildStarted{Child: "r2", Name: "research", CallID: "r1-1-1"}, event.ChildStarted{Child: "r3", Name: "check"},
		event.BudgetReserved{ID: "1.1/1", Run: "r2"}, event.BudgetCommitted{ID: "1.1/1", Run: "r2", USD: 0.25, Usage: usage, Priced: true},
		event.BudgetCommitted{ID: "1.1/1", Run: "r3"},
		event.ChildFinished{Child: "r2", Outcome: event.Outcome{Status: event.StatusCompleted, Reason: event.ReasonFinalAnswer}},
		event.ChildParked{Child: "r3", Reason: event.ParkApproval},
	}
	var b strings.Builder
	p := pageOfEvents(t, events...)
	p.head(&b, "pawl")
	for _, want := range []string{
		"child     r2  research  completed, final_answer  USD 0.2500\n", "child     r3  check  parked: approval_required  no model call\n",
		"107 tokens in (0 cached), 11 out, USD 1.2500\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for _, takenUp := range []event.Data{event.ChildWaiting{Child: "r3"}, event.RunResumed{}} {
		p := pageOfEvents(t, append(slices.Clip(events), takenUp)...)
		if got := childLine(p.Children[1]); !strings.Contains(got, "resumes with this run") {
			t.Errorf("after %T: %s", takenUp, got)
		}
	}
}

// A run may have answers by the hundred, and the table of models is long.
func TestThePageOfARunLooksUpAModelOnce(t *testing.T) {
	allocations := func(cycles int) float64 {
		return testing.AllocsPerRun(10, func() {
			all := slices.Repeat([]view.CycleLine{{Model: "openai/gpt-5"}}, cycles)
			if windows(all); all[cycles-1].Window == 0 {
				t.Error("the model's window is not known")
			}
		})
	}
	if one, many := allocations(1), allocations(100); many > one+10 {
		t.Errorf("%.0f allocations for the cycles of a run, %.0f for one of them", many, one)
	}
}
