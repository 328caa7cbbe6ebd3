package journaltest

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlrun/pawl/journal"
)

func counterContract() []contract {
	return []contract{
		{"a counter takes no more than its maximum", counterStops},
		{"of many who add to a counter none is lost", counterAddsAll},
	}
}

func counterStops(t *testing.T, s journal.Store, _ *clock) {
	counts := optional[journal.KeepsCounters](t, s, "counters")
	for i, c := range []struct {
		counter string
		n, most int64
		sum     int64
		added   bool
	}{
		{"a", 11, 10, 0, false},
		{"a", 6, 10, 6, true},
		{"a", 5, 10, 6, false},
		{"a", 4, 10, 10, true},
		{"a", 0, 10, 10, true},
		{"b", 1, math.MaxInt64, 1, true},
		{"a", -3, 0, 7, true}, // giving back needs no room
		{"a", 2, 5, 7, false}, // the maximum was lowered
		{"a", 5, math.MaxInt64, 12, true},
		{"a", 1, 12, 12, false},
	} {
		sum, added, err := counts.Count(t.Context(), c.counter, c.n, c.most)
		if err != nil || sum != c.sum || added != c.added {
			t.Errorf("%d: %d of %d added to %s: %d, %t, %v; want %d, %t", i, c.n, c.most, c.counter, sum, added, err, c.sum, c.added)
		}
	}
}

func counterAddsAll(t *testing.T, s journal.Store, _ *clock) {
	counts := optional[journal.KeepsCounters](t, s, "counters")
	const each, most = 20, 100
	var taken atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range each {
				_, added, err := counts.Count(t.Context(), "shared", 1, most)
				if err != nil {
					t.Error(err)
				}
				if added {
					taken.Add(1)
				}
			}
		})
	}
	all.Wait()
	sum, _, err := counts.Count(t.Context(), "shared", 0, most)
	if err != nil || sum != most || taken.Load() != most {
		t.Errorf("the sum is %d, and %d were added, want %d: %v", sum, taken.Load(), most, err)
	}
}
