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
