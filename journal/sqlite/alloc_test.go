package sqlite_test

import (
	"testing"

	"github.com/pawlrun/pawl/journal"
)

// maxAllocs is what an append of one event may allocate, from the caller to
// the disk and back.
const maxAllocs = 3

func TestAnAppendAllocatesLittle(t *testing.T) {
	_, s, d := begun(t)
	const n = 200
	batches := make([]journal.Batch, 0, n+1)
	for range n + 1 {
		b := d.Batch(t, message(400))
		batches = append(batches, b)
		d.Seq, d.Head = d.Seq+1, b.Head
	}
	next := 0
	got := testing.AllocsPerRun(n, func() {
		if _, err := s.Append(t.Context(), batches[next]); err != nil {
			t.Fatal(err)
		}
		next++
	})
	t.Logf("%.1f allocations", got)
	if got > maxAllocs {
		t.Errorf("an append allocates %.1f times, more than %d", got, maxAllocs)
	}
}
