package engine

import (
	"context"
	"fmt"
	"iter"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/machine"
)

// Run is a run that this process drives. It is safe for concurrent use.
type Run struct {
	ID     string
	engine *Engine
	driver *driver
}

// Send delivers a command to this run as [Engine.Send] does, also once it has
// parked, without the secrets of its environment and of the agents that this
// offers.
func (r *Run) Send(ctx context.Context, c journal.Command) error {
	c.Run = r.ID
	_, err := r.engine.send(ctx, c, sender{driver: r.driver})
	return err
}

// Events yields the run's events from the first on: the durable ones in order
// and without gaps, and, where deltas is true, the live ones that happen while
// the caller is listening. It ends when the run is not driven any more.
//
// Any number of callers may range at once, each at its own pace; one that lags
// far behind loses deltas, which a text.reset tells it, and never a durable
// event. Breaking out of the range detaches and leaves the run going, and so
// does the end of ctx, which yields its error. The error is an engine's
// failure; a failed run is an event. An event's data is shared: it must not be
// changed.
func (r *Run) Events(ctx context.Context, deltas bool) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		hub := r.driver.hub
		sub := hub.subscribe(deltas)
		defer hub.unsubscribe(sub)
		s := &stream{store: r.engine.store, run: r.ID, deltas: deltas, yield: yield}
		if !s.replay(ctx) {
			return
		}
		buf := make([]entry, 64)
		for {
			n, gap, ok := sub.read(ctx, buf)
			switch {
			case ctx.Err() != nil:
				s.fail(ctx.Err())
				return
			case !ok:
				<-r.driver.done
				if r.driver.overtook && !s.replay(ctx) {
					return
				}
				if r.driver.err != nil {
					yield(event.Event{}, r.driver.err)
				}
				return
			case gap && !s.tear(ctx, buf[:n]):
				return
			}
			for i := range buf[:n] {
				if !s.take(ctx, &buf[i]) {
					return
				}
			}
			clear(buf[:n])
		}
	}
}

// Wait blocks until the run has ended or parked, or ctx ends; the latter
// leaves the run going. The error is an engine's failure.
func (r *Run) Wait(ctx context.Context) (machine.State, error) {
	select {
	case <-r.driver.done:
		return r.driver.final, r.driver.err
	case <-ctx.Done():
		return machine.State{}, fmt.Errorf("engine: wait for run %s: %w", r.ID, ctx.Err())
	}
}

// Interrupt parks the run: what is in flight is stopped and settled first. It
// does not wait for that, and does nothing to a run that is not driven any
// more.
func (r *Run) Interrupt() { r.driver.interruptOnce() }

// Machine is the run's machine. It may be read once Wait has returned.
func (r *Run) Machine() machine.Machine { return r.driver.machine }
