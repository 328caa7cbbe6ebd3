package engine

import (
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/journal/memory"
)

// rows: ALF-76
func TestAnEventCostsNothingWithoutObservers(t *testing.T) {
	ev, heard := &event.Event{Data: event.RunStarted{}}, 0
	for _, observers := range [][]perform.Observer{nil, {{Run: func(perform.RunInfo) func(*event.Event) { return func(*event.Event) { heard++ } }}}} {
		e := New(memory.New(nil), nil, Options{Observers: observers})
		d := e.newDriver(nil, perform.Env{}, "r", "")
		allocated := testing.AllocsPerRun(100, func() { d.log.observe(ev) })
		if observers == nil && (allocated > 0 || heard > 0) {
			t.Errorf("it allocates %g times for an event that nobody observes", allocated)
		}
		if observers != nil && heard != 101 {
			t.Errorf("an observer heard %d times", heard)
		}
	}
}
