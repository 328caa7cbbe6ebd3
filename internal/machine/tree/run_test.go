package tree_test

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
)

// Events that follow from a stop at a time limit do not reset that time, as with an
// agent's calls.
func TestACommandThatIdleTimeStoppedIsNoProgress(t *testing.T) {
	for after, stopped := range map[time.Duration]bool{500 * time.Millisecond: false, time.Second: true} {
		r := tree.Run{Limits: budget.Limits{MaxIdleSeconds: 1}}
		var now time.Time
		for _, d := range []event.Data{event.RunStarted{}, event.CommandStarted{ID: "check", Attempt: 1}, event.CommandFinished{ID: "check"}} {
			if _, ends := d.(event.CommandFinished); ends {
				now = now.Add(after)
			}
			if err := r.Apply(&event.Event{Run: "r", Time: now, Data: d}); err != nil {
				t.Fatal(err)
			}
		}
		due, _ := r.Due()
		if !stopped {
			if len(due) != 0 || r.Spent().Idle != 0 {
				t.Errorf("after %s: idle for %s, and %+v is due", after, r.Spent().Idle, due)
			}
			continue
		}
		if len(due) != 1 || due[0].(machine.Record).Data.(event.RunTerminatedBy).Limit != budget.IdleTime {
			t.Errorf("after %s: idle for %s, and %+v is due", after, r.Spent().Idle, due)
		}
	}
}

// A second cancel changes nothing.
func TestTheFirstCancelCounts(t *testing.T) {
	var r tree.Run
	for _, d := range []event.Data{event.RunStarted{}, event.CancelRequested{Reason: "enough"}, event.CancelRequested{Reason: "again"}} {
		if err := r.Apply(&event.Event{Run: "r", Data: d}); err != nil {
			t.Fatal(err)
		}
	}
	due, _ := r.Due()
	if len(due) != 1 || due[0].(machine.Record).Data.(event.RunTerminatedBy).Detail != "enough" {
		t.Errorf("%+v is due", due)
	}
}

// A command that may be repeated runs again after its process died, but not after so many
// deaths that it may be their cause.
func TestDeathsDuringACommand(t *testing.T) {
	action := machine.RunCommand{ID: "build", Argv: []string{"make"}, Effect: event.EffectIdempotent}
	for _, effect := range []event.Effect{event.EffectPure, event.EffectIdempotent} {
		var r tree.Run
		apply := func(d event.Data) {
			t.Helper()
			if err := r.Apply(&event.Event{Run: "r", Data: d}); err != nil {
				t.Fatal(err)
			}
		}
		apply(event.RunStarted{})
		action.Effect = effect
		for attempt := 1; attempt <= machine.MaxDeaths; attempt++ {
			due := r.Command(action)
			if again, is := due[0].(machine.RunCommand); !is || again.Attempt != attempt {
				t.Fatalf("%s, attempt %d: %+v is due", effect, attempt, due)
			}
			apply(event.CommandStarted{ID: action.ID, Attempt: attempt, Effect: effect})
			apply(event.RunResumed{})
			apply(event.RunResumed{}) // this process died before the command ran again
		}
		settled, is := r.Command(action)[0].(machine.Record)
		if !is || settled.Data.(event.CommandFinished).ErrorType != event.ErrorInDoubt {
			t.Fatalf("%s: %+v is due", effect, settled)
		}
		if apply(settled.Data); r.Ran(action.ID) == nil {
			t.Errorf("%s: the command has not ended", effect)
		}
	}
}
