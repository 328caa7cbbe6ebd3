package drive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// Began returns the first event of a run with the run's place. fresh reports that no
// process has driven the run yet.
func Began(ctx context.Context, store journal.Store, run string) (started event.RunStarted, fresh bool, err error) {
	const page = 4
	for after, n := int64(0), page; n == page; after += page {
		records, err := store.Records(ctx, run, after, page)
		if err == nil && after == 0 && len(records) == 0 {
			err = journal.ErrNotFound
		}
		if err != nil {
			return started, false, fmt.Errorf("drive: read the beginning of run %s: %w", run, err)
		}
		n = len(records)
		for _, r := range records {
			if !OneOf(event.TypeRunStarted, event.TypeRunPlaced, event.TypeRunForked)(event.Type(r.Type)) {
				return started, false, nil
			}
			e, err := decode(run, r)
			if err != nil {
				return started, false, err
			}
			switch d := e.Data.(type) {
			case event.RunStarted:
				started = d
			case event.RunPlaced:
				started = started.Placed(d)
			}
		}
	}
	return started, true, nil
}

// Amendment changes the progress in a run's row, and returns events that follow from no
// machine. Its context ends when the run's lease is lost.
type Amendment func(context.Context, *journal.Run) ([]event.Data, error)

// Amend lets decide change a run, and holds the run's lease meanwhile. It releases the lease.
func Amend(ctx context.Context, store journal.Store, lease journal.Lease, lasts time.Duration, now func() time.Time, decide Amendment) error {
	row, err := store.Run(ctx, lease.Run)
	if err == nil {
		var events []event.Data
		lease, err = renewing(ctx, store, lease, lasts, func(ctx context.Context) (err error) {
			events, err = decide(ctx, &row)
			return err
		})
		if err == nil {
			err = appendTo(ctx, store, lease, row, events, now())
		}
	}
	if err != nil {
		return errors.Join(err, store.Release(context.WithoutCancel(ctx), lease))
	}
	return nil
}

// appendTo appends events to a run with its changed row, and releases the lease.
func appendTo(ctx context.Context, store journal.Store, lease journal.Lease, row journal.Run, events []event.Data, now time.Time) error {
	b := journal.Batch{Lease: lease, Head: row.Head, Status: row.Progress, Time: row.Updated, Release: true}
	if now = now.UTC().Truncate(time.Microsecond); len(events) > 0 && now.After(b.Time) {
		b.Time = now
	}
	for i, data := range events {
		seq := row.Seq + int64(i) + 1
		body, err := event.Encode(&event.Event{Seq: seq, Run: row.ID, Time: b.Time, Data: data, Prev: b.Head})
		if err != nil {
			return err
		}
		b.Head = event.Hash(body)
		b.Records = append(b.Records, journal.Record{Run: row.ID, Seq: seq, Type: string(data.EventType()), Body: body})
	}
	_, err := store.Append(ctx, b)
	return err
}
