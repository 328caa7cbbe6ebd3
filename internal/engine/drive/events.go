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

// AsStored reads a run's events in order, each in its stored form with its pos. If
// types are given, it reads only those.
func AsStored(ctx context.Context, store journal.Store, run string, types ...event.Type) iter.Seq2[*event.Event, error] {
	read := store.Records
	if typed, may := store.(journal.ReadsTypes); may && len(types) > 0 {
		read = func(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
			return typed.RecordsOf(ctx, run, after, limit, types...)
		}
	}
	return since(ctx, read, run, 0, func(t event.Type) bool { return len(types) == 0 || slices.Contains(types, t) })
}

// Since is [AsStored] for the events after a number, filtered by type.
func Since(ctx context.Context, store journal.Store, run string, after int64, wanted func(event.Type) bool) iter.Seq2[*event.Event, error] {
	return since(ctx, store.Records, run, after, wanted)
}

type recordsFunc = func(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error)

func since(ctx context.Context, read recordsFunc, run string, after int64, wanted func(event.Type) bool) iter.Seq2[*event.Event, error] {
	const page = 500
	return func(yield func(*event.Event, error) bool) {
		for n := page; n == page; {
			records, err := read(ctx, run, after, page)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range records {
				if after = r.Seq; !wanted(event.Type(r.Type)) {
					continue
				}
				e, err := decode(run, r)
				if !yield(e, err) || err != nil {
					return
				}
			}
			n = len(records)
		}
	}
}

// Backwards reads a run's events of some types from the newest to the first, for a
// reader that stops early: the first read takes 8 records, and each following one four
// times as many.
func Backwards(ctx context.Context, store journal.Store, row journal.Run, wanted func(event.Type) bool) iter.Seq2[*event.Event, error] {
	return func(yield func(*event.Event, error) bool) {
		for size, upTo := int64(8), row.Seq; upTo > 0; size, upTo = 4*size, upTo-size {
			from := max(upTo-size, 0)
			records, err := store.Records(ctx, row.ID, from, int(upTo-from))
			if missing := upTo - from - int64(len(records)); err == nil && missing > 0 {
				err = &journal.CorruptError{Run: row.ID, Seq: upTo, What: fmt.Sprintf("of the %d events up to it %d are missing", upTo-from, missing)}
			}
			if err != nil {
				yield(nil, fmt.Errorf("last events of run %s: %w", row.ID, err))
				return
			}
			for _, r := range slices.Backward(records) {
				if !wanted(event.Type(r.Type)) {
					continue
				}
				e, err := decode(row.ID, r)
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// OneOf returns whether an event's type is one of some, for [Since] and [Backwards].
func OneOf(types ...event.Type) func(event.Type) bool {
	return func(t event.Type) bool { return slices.Contains(types, t) }
}

// decode returns the event of a record with its pos. The error is a [*UnreadableError].
func decode(run string, r journal.Record) (*event.Event, error) {
	e, err := event.Decode(r.Body)
	if err != nil {
		return nil, &UnreadableError{fmt.Errorf("run %s, event %d: %w", run, r.Seq, err)}
	}
	e.Pos = r.Pos
	return e, nil
}

// At returns the payload of the event after a number.
func At[T event.Data](ctx context.Context, store journal.Store, run string, after int64) (said T, err error) {
	e, err := at(ctx, store, run, after)
	if err != nil {
		return said, fmt.Errorf("drive: read event %d of run %s: %w", after+1, run, err)
	}
	said, ok := e.Data.(T)
	if !ok {
		return said, fmt.Errorf("drive: event %d of run %s is %s", after+1, run, e.Type())
	}
	return said, nil
}

// at returns the event after a number.
func at(ctx context.Context, store journal.Store, run string, after int64) (*event.Event, error) {
	records, err := store.Records(ctx, run, after, 1)
	if err == nil && len(records) == 0 {
		err = journal.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return event.Decode(records[0].Body)
}

// Read is an event of a run, in its stored and its folded form.
type Read struct {
	Record journal.Record
	Event  *event.Event
	// Hash is the hash of the stored form, which the next event contains.
	Hash string
}

// UnreadableError means that a journal was read but is not valid: it is damaged, or a
// newer version wrote it. A retry would fail too.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return e.Err.Error() }
func (e *UnreadableError) Unwrap() error { return e.Err }

// Events reads a run's events in order up to a number, 0 for all of them, with the
// texts that are stored once for several of them. A text in an event after that number
// is read from the child that produced it. If that fails, the event is read without its
// text, see [event.LeftOut].
func Events(ctx context.Context, store journal.Store, run string, upTo int64) iter.Seq2[Read, error] {
	return (&reading{store: store, run: run, upTo: upTo}).events(ctx)
}

// reading reads a run's events after the one with a number and a hash.
type reading struct {
	store     journal.Store
	run       string
	seq, upTo int64
	hash      string

	texts event.Texts
	// held holds the events since the first whose text is still missing.
	held []Read
}

func (r *reading) events(ctx context.Context) iter.Seq2[Read, error] {
	const page = 1000
	return func(yield func(Read, error) bool) {
		for n := page; n == page; {
			limit := page
			if r.upTo > 0 {
				limit = int(min(page, r.upTo-r.seq))
			}
			var records []journal.Record
			var err error
			if limit > 0 {
				records, err = r.store.Records(ctx, r.run, r.seq, limit)
			}
			for _, rec := range records {
				read, err := r.next(rec)
				if err != nil {
					yield(read, err)
					return
				}
				if r.held = append(r.held, read); !r.texts.Missing() && !r.release(yield) {
					return
				}
			}
			if err != nil {
				yield(Read{}, err)
				return
			}
			n = len(records)
		}
		for _, h := range r.held {
			if d, is := h.Event.Data.(event.ChildFinished); is && d.Behind {
				if text, known := finalTextOf(ctx, r.store, d.Child); known {
					r.texts.Say(h.Event.Step, text)
				}
			}
		}
		r.release(yield)
	}
}

// next decodes the next record. A record that does not follow the previous one is an
// error, because it was never written in this place.
func (r *reading) next(rec journal.Record) (Read, error) {
	e, err := event.Decode(rec.Body)
	if err == nil && r.seq > 0 && (rec.Seq != r.seq+1 || e.Prev != r.hash) {
		err = &journal.CorruptError{
			Run: r.run, Seq: r.seq, What: fmt.Sprintf("its hash is not the one that event %d carries", rec.Seq), Want: e.Prev, Got: r.hash,
		}
	}
	if err != nil {
		return Read{Record: rec}, &UnreadableError{err}
	}
	r.texts.Note(e)
	r.seq, r.hash = rec.Seq, event.Hash(rec.Body)
	return Read{rec, e, r.hash}, nil
}

// release yields the events that are held, and reports whether the caller wants more.
func (r *reading) release(yield func(Read, error) bool) bool {
	for _, h := range r.held {
		if !yield(h, nil) {
			return false
		}
	}
	r.held = r.held[:0]
	return true
}

// finalTextOf returns the final text of a run that has ended.
func finalTextOf(ctx context.Context, store journal.Store, run string) (text string, known bool) {
	row, err := store.Run(ctx, run)
	if err != nil {
		return "", false
	}
	var o event.Outcome
	err = json.Unmarshal(row.Outcome, &o)
	return o.FinalOutput, err == nil
}
