package control

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/pawlrun/pawl/journal"
)

// backwards are a run's records from the newest to the first, for who stops
// early: the first read takes size of them, each that follows four times as many.
func (d *Controller) backwards(ctx context.Context, r journal.Run, size int64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for size, upTo := size, r.Seq; upTo > 0; size, upTo = 4*size, upTo-size {
			from := max(upTo-size, 0)
			records, err := d.store.Records(ctx, r.ID, from, int(upTo-from))
			if err != nil {
				yield(journal.Record{}, fmt.Errorf("control: last events of run %s: %w", r.ID, err))
				return
			}
			if missing := upTo - from - int64(len(records)); missing > 0 {
				// What is not there would read as if it had not been said.
				yield(journal.Record{}, fmt.Errorf("control: last events of run %s: %w", r.ID, &journal.CorruptError{
					Run: r.ID, Seq: upTo, What: fmt.Sprintf("of the %d events up to it %d are missing", upTo-from, missing),
				}))
				return
			}
			for _, rec := range slices.Backward(records) {
				if !yield(rec, nil) {
					return
				}
			}
		}
	}
}
