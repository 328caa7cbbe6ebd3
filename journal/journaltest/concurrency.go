package journaltest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlrun/pawl/journal"
)

func concurrencyContract() []contract {
	return []contract{
		{"positions follow the order of commits with 64 writers", posIsCommitOrder},
		{"readers see whole batches", readersSeeWholeBatches},
		{"one refused append does not harm those beside it", refusalHarmsNoOther},
	}
}

// posIsCommitOrder checks that an append that is acknowledged first has the lower pos,
// and that a reader of the tail never finds a pos below one that it has seen.
func posIsCommitOrder(t *testing.T, s journal.Store, _ *clock) {
	const writers, each = 64, 20
	var wg sync.WaitGroup
	var acknowledged atomic.Int64
	for i := range writers {
		d := Start(t, s, fmt.Sprintf("run%d", i))
		wg.Go(func() {
			for range each {
				before := acknowledged.Load()
				if err := d.Write(t, d.Batch(t, said("one"), said("two"))); err != nil {
					t.Errorf("append: %v", err)
					return
				}
				if d.First <= before {
					t.Errorf("pos %d was given after %d had been acknowledged", d.First, before)
				}
				for seen := acknowledged.Load(); seen < d.First+1 && !acknowledged.CompareAndSwap(seen, d.First+1); seen = acknowledged.Load() {
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	var tail []journal.Record
	for over := false; ; {
		select {
		case <-done:
			over = true
		default:
		}
		after := int64(0)
		if len(tail) > 0 {
			after = tail[len(tail)-1].Pos
		}
		more, err := s.Tail(t.Context(), after, 50)
		if err != nil {
			t.Fatalf("tail: %v", err)
		}
		tail = append(tail, more...)
		if over && len(more) == 0 {
			break
		}
	}
	if len(tail) != writers*(each*2+1) {
		t.Errorf("the tail gave %d records, want %d: some came in below what had been read", len(tail), writers*(each*2+1))
	}
	next := map[string]int64{}
	for i, r := range tail {
		if i > 0 && r.Pos != tail[i-1].Pos+1 {
			t.Fatalf("pos %d follows %d", r.Pos, tail[i-1].Pos)
		}
		if next[r.Run]++; r.Seq != next[r.Run] {
			t.Fatalf("seq %d of %s comes where %d is next", r.Seq, r.Run, next[r.Run])
		}
	}
}

func readersSeeWholeBatches(t *testing.T, s journal.Store, _ *clock) {
	const batches, size = 60, 3
	d := Start(t, s, "a")
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				row, err := s.Run(t.Context(), "a")
				if err != nil {
					t.Errorf("run: %v", err)
					return
				}
				records, err := s.Records(t.Context(), "a", 0, 0)
				if err != nil {
					t.Errorf("records: %v", err)
					return
				}
				if n := len(records) - 1; n%size != 0 || int64(len(records)) < row.Seq {
					t.Errorf("%d records under a row that knows %d", len(records), row.Seq)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for range batches {
		d.Append(t, said("one"), said("two"), said("three"))
	}
	close(done)
	wg.Wait()
}

func refusalHarmsNoOther(t *testing.T, s journal.Store, _ *clock) {
	const writers, each = 16, 10
	drivers := make([]*Driver, writers)
	for i := range drivers {
		drivers[i] = Start(t, s, fmt.Sprintf("run%d", i))
	}
	var wg sync.WaitGroup
	for i, d := range drivers {
		wg.Go(func() {
			for n := range each {
				b := d.Batch(t, said("fine"))
				if (i+n)%3 == 0 {
					bad := d.Batch(t, said("refused"))
					bad.Lease.Epoch++
					if err := d.Write(t, bad); !errors.Is(err, journal.ErrStale) {
						t.Errorf("got %v, want ErrStale", err)
					}
				}
				if err := d.Write(t, b); err != nil {
					t.Errorf("append beside a refused one: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	var positions []int64
	for _, d := range drivers {
		if _, err := journal.Verify(t.Context(), s, d.Lease.Run, d.Head); err != nil {
			t.Error(err)
		}
		for _, r := range all(t, s, d.Lease.Run, 0) {
			positions = append(positions, r.Pos)
		}
	}
	slices.Sort(positions)
	if n := len(slices.Compact(positions)); n != writers*(each+1) {
		t.Errorf("%d positions for %d events", n, writers*(each+1))
	}
}
