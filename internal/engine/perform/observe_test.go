package perform

import (
	"testing"

	"github.com/pawlrun/pawl/internal/machine"
)

// rows: ALF-76
func TestAChunkCostsNothingWithoutObservers(t *testing.T) {
	chunks := 0
	for _, observers := range [][]Observer{nil, {{Chunks: func(ModelCall) func() { return func() { chunks++ } }}}} {
		p := &Performer{shared: Shared{Observers: observers}}
		allocated := testing.AllocsPerRun(100, func() {
			if chunk := p.chunks(&machine.CallModel{}); chunk != nil {
				chunk()
			}
		})
		if observers == nil && (allocated > 0 || chunks > 0) {
			t.Errorf("it allocates %g times for a chunk that nobody observes", allocated)
		}
		if observers != nil && (allocated == 0 || chunks != 101) {
			t.Errorf("an observer got %d chunks", chunks)
		}
	}
}
