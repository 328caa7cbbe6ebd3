package engine

import (
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal/memory"
)

// rows: ALF-76
func TestObservingCostsNothingWithoutObservers(t *testing.T) {
	ev, heard := &event.Event{Data: event.RunStarted{}}, 0
	for _, observers := range [][]Observer{nil, {{Run: func(RunInfo) func(*event.Event) { return func(*event.Event) { heard++ } }, Chunks: func(ModelCall) func() { return func() { heard++ } }}}} {
		e := New(memory.New(nil), nil, Options{Observers: observers})
		d := e.newDriver(nil, Env{}, "r", "")
		allocated := testing.AllocsPerRun(100, func() {
			d.log.observe(ev)
			if chunk := d.env.chunks(&machine.CallModel{}); chunk != nil {
				chunk()
			}
		})
		if observers == nil && (allocated > 0 || heard > 0) {
			t.Errorf("it allocates %g times for an event and a chunk that nobody observes", allocated)
		}
		if observers != nil && (allocated == 0 || heard != 202) {
			t.Errorf("an observer heard %d times", heard)
		}
	}
}
