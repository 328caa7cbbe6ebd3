package engine

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// Run is a run that this process drives. It is safe for concurrent use.
type Run struct {
	ID     string
	engine *Engine
	driver *driver
	// begun is the number of the last event before those of this driver.
	begun int64
}

var _ drive.Run = (*Run)(nil)

// RunID implements [drive.Run].
func (r *Run) RunID() string { return r.ID }

// Send delivers a command to this run as [Engine.Send] does, even after it has
// parked. It removes the secrets of the run's environment and of the agents that
// the run offers.
func (r *Run) Send(ctx context.Context, c journal.Command) error {
	c.Run = r.ID
	_, err := r.engine.send(ctx, c, sender{driver: r.driver})
	return err
}

// Wait blocks until the run has ended or parked, or until ctx ends, which does
// not affect the run. The error is a failure of the engine.
func (r *Run) Wait(ctx context.Context) (machine.State, error) {
	select {
	case <-r.driver.result.done:
		return r.driver.result.final, r.driver.result.err
	case <-ctx.Done():
		return machine.State{}, fmt.Errorf("engine: wait for run %s: %w", r.ID, ctx.Err())
	}
}

// Interrupt parks the run: effects under way are stopped and settled first. It
// does not wait for that, and does nothing if the run is no longer driven.
func (r *Run) Interrupt() { r.driver.life.interrupt(ErrInterrupted) }

// Park parks the run and the runs below it when their calls under way have ended. They
// start no others. Interrupt stops the calls that are still under way.
func (r *Run) Park() { r.driver.life.park() }

// Streams reports whether an answer of a model arrives, in the run or in one below it.
func (r *Run) Streams() bool {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	for _, d := range r.engine.drivers {
		if d.run.root == r.driver.run.root && d.env.Deltas.Streaming() {
			return true
		}
	}
	return false
}

// Wakes returns the end of the time that the run waits for, and zero if the run waits for
// none or is busy.
func (r *Run) Wakes() time.Time {
	d := r.driver
	if !d.lock.tryLock() {
		return time.Time{}
	}
	defer d.lock.unlock()
	if d.alarm.waiting == "" || len(d.effects.pending) > 0 {
		return time.Time{}
	}
	return d.alarm.at
}

// Machine returns the run's machine. It may be used once Wait has returned.
func (r *Run) Machine() machine.Machine { return r.driver.machine }

// Follower returns the source of the events of all runs of the store, for
// subscribers in this process.
func (e *Engine) Follower() *follow.Follower { return e.follower }

// Events yields the run's events from the first on: the durable ones in order
// and without gaps, and, if deltas is true, the live ones that happen while the
// caller ranges. It ends when the run is no longer driven.
//
// Any number of callers may range at once, each at its own pace. One that lags
// far behind loses deltas, which a text.reset reports, but never a durable
// event. Breaking out of the range detaches and does not affect the run, and
// neither does the end of ctx, which yields its error. The error is a failure of
// the engine; a failed run is an event. An event's data is shared and must not
// be changed.
func (r *Run) Events(ctx context.Context, deltas bool) iter.Seq2[event.Event, error] {
	return r.listen(ctx, follow.Query{Run: r.ID, Deltas: deltas})
}

// Tree yields the events of the run and of all runs below it, from the first on:
// the durable ones in the order of pos, each once, whichever process drives the
// run, and, if deltas is true, the live ones of the runs that this process
// drives. A delta names its run, and comes before the durable event that
// replaces it or not at all. The last event is the run's own. Otherwise it is
// like [Run.Events].
func (r *Run) Tree(ctx context.Context, deltas bool) iter.Seq2[event.Event, error] {
	return r.listen(ctx, follow.Query{Run: r.ID, Deltas: deltas, Tree: true})
}

func (r *Run) listen(ctx context.Context, q follow.Query) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		sub, err := r.engine.follower.Subscribe(ctx, q)
		if err != nil {
			yield(event.Event{}, fmt.Errorf("engine: %w", err))
			return
		}
		defer sub.Close()
		l := listener{run: r, sub: sub, yield: yield}
		if err := l.listen(ctx); err != nil {
			yield(event.Event{}, err)
		}
	}
}

// listener yields the events of a subscription to one caller until the run's
// last.
type listener struct {
	run   *Run
	sub   *follow.Subscription
	yield func(event.Event, error) bool
	// last is the number of the run's last event once known, else 0. over reports
	// whether the caller has received it, or has stopped.
	last int64
	over bool
}

// listen returns the failure for which the run is no longer driven, if any.
func (l *listener) listen(ctx context.Context) error {
	for looked := false; ; {
		left := l.left()
		events, err := l.sub.Poll(ctx)
		if err != nil {
			return fmt.Errorf("engine: %w", err)
		}
		for i := range events {
			if err := l.give(ctx, &events[i].Event); err != nil {
				return err
			}
			if l.over {
				return nil
			}
		}
		switch {
		case l.sub.More():
		case left && len(events) == 0 && looked:
			return l.run.driver.result.err
		case left:
			// The subscription may not have seen all events that are in the journal.
			l.sub.CatchUp()
			looked = true
		default:
			select {
			case <-l.sub.Wake():
			case <-l.run.driver.result.done:
			case <-ctx.Done():
			}
		}
	}
}

// left reports whether the run is no longer driven.
func (l *listener) left() bool {
	select {
	case <-l.run.driver.result.done:
		return true
	default:
		return false
	}
}

// give yields an event. Later events in runs below, and a decision about a call
// of a parked run, do not come from this driver.
func (l *listener) give(ctx context.Context, e *event.Event) error {
	if l.over = !l.yield(*e, nil); l.over || e.Run != l.run.ID || e.Seq <= l.run.begun {
		return nil
	}
	switch e.Data.(type) {
	case event.RunCompleted, event.RunParked:
		if err := l.end(ctx, e.Seq); err != nil {
			return fmt.Errorf("engine: events of run %s: %w", l.run.ID, err)
		}
	}
	l.over = l.last > 0 && e.Seq >= l.last
	if l.over {
		return l.run.driver.result.err
	}
	return nil
}

// end finds the run's last event, which is the last of its driver unless
// commands were answered after it.
func (l *listener) end(ctx context.Context, seq int64) error {
	select {
	case <-l.run.driver.result.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.last = seq
	if !l.run.driver.result.overtook {
		return nil
	}
	row, err := l.run.engine.store.Run(ctx, l.run.ID)
	l.last = row.Seq
	return err
}
