package engine

import (
	"context"
	"errors"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// ErrInterrupted, as the cause of a context that ends, parks the run instead
// of cancelling it.
var ErrInterrupted = errors.New("engine: interrupted")

// lifetime says how long a run is driven here.
type lifetime struct {
	// The end of ctx cancels or parks the run; work is for what the driver does
	// itself, and outlives it: a cancelled run still settles its calls and
	// journals its end.
	ctx, work context.Context
	// interrupt asks that the run parks, which interrupted says was taken up.
	interrupt   chan struct{}
	interrupted bool
	cancelled   bool
	// broken says that a defect ends the run.
	broken bool
}

// leaving reports whether the run is on its way to park or to end.
func (l *lifetime) leaving() bool { return l.interrupted || l.cancelled }

// ended is closed when the caller's context ends, nil where that changes nothing any more.
func (l *lifetime) ended() <-chan struct{} {
	if l.leaving() {
		return nil
	}
	return l.ctx.Done()
}

// interruptOnce asks that the run parks. It does not wait, and is safe for concurrent use.
func (l *lifetime) interruptOnce() {
	select {
	case l.interrupt <- struct{}{}:
	default:
	}
}

// whyStopped is why the driver stops its children: they end with a run that
// ends, and park with one that does not.
func (l *lifetime) whyStopped() error {
	if l.cancelled || l.broken {
		return errAbove
	}
	return ErrInterrupted
}

// alarm is when the machine wants to be asked again.
type alarm struct {
	// at is zero for never, and waiting says what the run waits for meanwhile, empty
	// where it does something.
	at      time.Time
	waiting string
}

// set sets the alarm to the earliest of the moments asked for.
func (a *alarm) set(at time.Time) {
	if a.at.IsZero() || at.Before(a.at) {
		a.at = at
	}
}

// timer goes off at the alarm; its channel is nil where none is set.
func (a *alarm) timer(now func() time.Time) (_ <-chan time.Time, stop func() bool) {
	if a.at.IsZero() {
		return nil, func() bool { return true }
	}
	t := time.NewTimer(a.at.Sub(now()))
	return t.C, t.Stop
}

// result is what is left when a driver is done.
type result struct {
	// done is closed then. What follows may be read once it is.
	done  chan struct{}
	final machine.State
	// err is the engine's failure, and overtook says that a command was answered after
	// the last commit of the driver.
	err      error
	overtook bool
}

// contextEnded takes up why the caller's context ended, once.
func (d *driver) contextEnded(cause error) error {
	switch {
	case d.life.leaving():
		return nil
	case errors.Is(cause, ErrInterrupted):
		return d.stopForNow(d.life.work)
	}
	return d.cancel(event.CancelRequested{By: d.engine.opts.Owner, Reason: cause.Error()})
}

// stopForNow parks the run once its effects have stopped.
func (d *driver) stopForNow(context.Context) error {
	d.life.interrupted = true
	d.effects.cancelPending()
	return nil
}

// cancel stops what is under way and tells the machine, which ends the run. A
// second cancel changes nothing.
func (c *core) cancel(request event.CancelRequested) error {
	if c.life.cancelled {
		return nil
	}
	c.life.cancelled = true
	c.effects.cancelPending()
	return c.stage(request)
}
