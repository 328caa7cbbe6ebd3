package engine

import (
	"context"
	"fmt"
	"iter"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/machine"
)

// Run is a run that this process drives.
type Run struct {
	ID     string
	engine *Engine
	driver *driver
}

// Events yields the run's events from the first on: the durable ones in order
// and without gaps, and, where deltas is true, the live ones that happen while
// the caller is listening. It ends when the run is not driven any more.
// Breaking out of the range detaches and leaves the run going; the error is an
// engine's failure, while a failed run is an event.
func (r *Run) Events(ctx context.Context, deltas bool) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		sub := r.driver.hub.subscribe()
		defer r.driver.hub.unsubscribe(sub)
		s := &stream{store: r.engine.store, run: r.ID, deltas: deltas, yield: yield}
		if !s.replay(ctx) {
			return
		}
		buf := make([]event.Event, 64)
		for {
			n, gap, ok := sub.read(ctx, buf)
			switch {
			case ctx.Err() != nil:
				yield(event.Event{}, fmt.Errorf("engine: events of run %s: %w", r.ID, ctx.Err()))
				return
			case !ok:
				<-r.driver.done
				if r.driver.err != nil {
					yield(event.Event{}, r.driver.err)
				}
				return
			case gap && !s.replay(ctx):
				return
			}
			for _, e := range buf[:n] {
				if !s.emit(e) {
					return
				}
			}
			clear(buf[:n])
		}
	}
}

// stream merges the journal with live events, each durable one once.
type stream struct {
	store  journal.Store
	run    string
	deltas bool
	last   int64
	yield  func(event.Event, error) bool
}

// replay yields what the journal holds beyond the last event yielded.
func (s *stream) replay(ctx context.Context) bool {
	const page = 500
	for {
		records, err := s.store.Records(ctx, s.run, s.last, page)
		if err != nil {
			s.yield(event.Event{}, err)
			return false
		}
		for _, r := range records {
			e, err := event.Decode(r.Body)
			if err != nil {
				s.yield(event.Event{}, err)
				return false
			}
			e.Pos = r.Pos
			if !s.emit(*e) {
				return false
			}
		}
		if len(records) < page {
			return true
		}
	}
}

func (s *stream) emit(e event.Event) bool {
	if e.Seq == 0 {
		return !s.deltas || s.yield(e, nil)
	}
	if e.Seq <= s.last {
		return true
	}
	s.last = e.Seq
	return s.yield(e, nil)
}

// Wait blocks until the run has ended or parked, or ctx ends; the latter
// leaves the run going. The error is an engine's failure.
func (r *Run) Wait(ctx context.Context) (machine.State, error) {
	select {
	case <-r.driver.done:
		return r.driver.machine.State(), r.driver.err
	case <-ctx.Done():
		return machine.State{}, fmt.Errorf("engine: wait for run %s: %w", r.ID, ctx.Err())
	}
}

// Interrupt parks the run: what is in flight is stopped and settled first.
func (r *Run) Interrupt() {
	select {
	case r.driver.interrupt <- struct{}{}:
	default:
	}
}

// Machine is the run's machine. It may be read once Wait has returned.
func (r *Run) Machine() machine.Machine { return r.driver.machine }
