package drive

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// AsStored reads a run's events in their order, each as it is stored and with its pos. Where
// types are given, it reads only those.
func AsStored(ctx context.Context, store journal.Store, run string, types ...event.Type) iter.Seq2[*event.Event, error] {
	const page = 500
	return func(yield func(*event.Event, error) bool) {
		for after, n := int64(0), page; n == page; {
			records, err := store.Records(ctx, run, after, page)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range records {
				if after = r.Seq; len(types) > 0 && !slices.Contains(types, event.Type(r.Type)) {
					continue
				}
				e, err := event.Decode(r.Body)
				if err != nil {
					yield(nil, fmt.Errorf("run %s, event %d: %w", run, r.Seq, err))
					return
				}
				e.Pos = r.Pos
				if !yield(e, nil) {
					return
				}
			}
			n = len(records)
		}
	}
}

// At returns the payload of the event after a number.
func At[T event.Data](ctx context.Context, store journal.Store, run string, after int64) (said T, err error) {
	records, err := store.Records(ctx, run, after, 1)
	if err == nil && len(records) == 0 {
		err = journal.ErrNotFound
	}
	var e *event.Event
	if err == nil {
		e, err = event.Decode(records[0].Body)
	}
	if err != nil {
		return said, fmt.Errorf("drive: read event %d of run %s: %w", after+1, run, err)
	}
	said, ok := e.Data.(T)
	if !ok {
		return said, fmt.Errorf("drive: event %d of run %s is %s", after+1, run, e.Type())
	}
	return said, nil
}

// Read is an event of a run as it is stored, and as it is folded.
type Read struct {
	Record journal.Record
	Event  *event.Event
}

// DecodeError is returned for an event that this version cannot read.
type DecodeError struct{ Err error }

func (e *DecodeError) Error() string { return e.Err.Error() }
func (e *DecodeError) Unwrap() error { return e.Err }

// Events reads a run's events in order up to a number, 0 for all of them, with
// the texts that are stored once for several of them. A text in an event behind
// that number is read from the child that produced it. If that fails, the event
// is read without its text, see [event.LeftOut].
func Events(ctx context.Context, store journal.Store, run string, upTo int64) iter.Seq2[Read, error] {
	const page = 1000
	return func(yield func(Read, error) bool) {
		var texts event.Texts
		var held []Read
		for after, limit := int64(0), page; ; {
			if upTo > 0 {
				limit = int(min(page, upTo-after))
			}
			var records []journal.Record
			var err error
			if limit > 0 {
				records, err = store.Records(ctx, run, after, limit)
			}
			for _, r := range records {
				e, err := event.Decode(r.Body)
				if err != nil {
					yield(Read{Record: r}, &DecodeError{err})
					return
				}
				texts.Note(e)
				held, after = append(held, Read{r, e}), r.Seq
				if texts.Missing() {
					continue
				}
				for _, h := range held {
					if !yield(h, nil) {
						return
					}
				}
				held = held[:0]
			}
			if err != nil {
				yield(Read{}, err)
				return
			}
			if len(records) < page {
				break
			}
		}
		for _, h := range held {
			if d, is := h.Event.Data.(event.ChildFinished); is && d.Behind {
				if text, known := saidBy(ctx, store, d.Child); known {
					texts.Say(h.Event.Step, text)
				}
			}
			if !yield(h, nil) {
				return
			}
		}
	}
}

// saidBy returns the final text of a run that has ended.
func saidBy(ctx context.Context, store journal.Store, run string) (text string, known bool) {
	row, err := store.Run(ctx, run)
	if err != nil {
		return "", false
	}
	var o event.Outcome
	err = json.Unmarshal(row.Outcome, &o)
	return o.FinalOutput, err == nil
}
