package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// ErrInterrupted, as the cause of a context that ends, parks the run instead of
// cancelling it.
var ErrInterrupted = errors.New("engine: interrupted")

// lifetime is how long a run is driven here.
type lifetime struct {
	// The end of ctx cancels or parks the run; interrupt ends it. work is for the driver's
	// own operations and outlives ctx: a cancelled run still settles its calls and
	// journals its end.
	ctx, work context.Context
	interrupt context.CancelCauseFunc
	// The end of parking parks the run without stopping its calls; park ends it. The runs
	// of a tree share it.
	parking context.Context
	park    context.CancelFunc
	// interrupted reports whether the run starts nothing more, and stopped whether its
	// effects were stopped, too.
	interrupted, stopped, cancelled bool
	// broken reports whether a defect ends the run.
	broken bool
}

// leaving reports whether the run is about to park or to end.
func (l *lifetime) leaving() bool { return l.interrupted || l.cancelled }

// ended returns the channel that is closed when the caller's context ends, nil
// if that no longer matters.
func (l *lifetime) ended() <-chan struct{} {
	if l.stopped || l.cancelled {
		return nil
	}
	return l.ctx.Done()
}

// signal fills a channel of one element, unless it is full.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// whyStopped is the cause for which the driver stops its children: they end with
// a run that ends, and park with one that parks.
func (l *lifetime) whyStopped() error {
	if l.cancelled || l.broken {
		return errAbove
	}
	return ErrInterrupted
}

// alarm is when the machine's Next must be called again.
type alarm struct {
	// at is zero for never. waiting is what the run waits for until then, empty if
	// it does something.
	at      time.Time
	waiting string
}

// set moves the alarm to an earlier time.
func (a *alarm) set(at time.Time) {
	if a.at.IsZero() || at.Before(a.at) {
		a.at = at
	}
}

// timer fires at the alarm; its channel is nil if there is none.
func (a *alarm) timer(now func() time.Time) (_ <-chan time.Time, stop func() bool) {
	if a.at.IsZero() {
		return nil, func() bool { return true }
	}
	t := time.NewTimer(a.at.Sub(now()))
	return t.C, t.Stop
}

// result is the result of a driver that has left.
type result struct {
	// done is closed when the driver has left. The fields below may be read after
	// that.
	done  chan struct{}
	final machine.State
	// err is the engine's failure. overtook reports whether a command was answered
	// after the last commit of the driver.
	err      error
	overtook bool
}

// contextEnded handles the cause of the end of the caller's context, once.
func (d *driver) contextEnded(cause error) error {
	switch {
	case d.life.stopped || d.life.cancelled:
		return nil
	case errors.Is(cause, ErrInterrupted):
		d.life.interrupted, d.life.stopped = true, true
		d.effects.cancelPending()
		return nil
	}
	return d.cancel(event.CancelRequested{By: d.engine.opts.Owner, Reason: cause.Error()})
}

// startNoMore parks the run once its calls have ended. It stops the effects that wait for
// a person or for the parent's budget.
func (d *driver) startNoMore() {
	d.life.interrupted = true
	d.effects.stop(reserveEffect)
	for id := range d.questions.asked {
		d.effects.stop(askEffect(id))
	}
}

// cancel stops the effects and applies the cancellation, which ends the run. A
// second cancel changes nothing.
func (c *core) cancel(request event.CancelRequested) error {
	if c.life.cancelled {
		return nil
	}
	c.life.cancelled = true
	c.effects.cancelPending()
	return c.stage(request)
}

// driverLock protects a driver's state. Its holder does what is due.
//
// The driver's own goroutine holds it from the start, and releases it only while
// it waits. The goroutine of a finished effect takes the lock if it is free, and
// continues the run. Handing each answer to the driver's goroutine, and each
// effect to another one, would cost four wake-ups with cold caches in a cycle.
type driverLock struct {
	free chan struct{}
	// over reports whether the driver leaves, and failure why, if there was still
	// work to do. From then on the driver's own goroutine keeps the lock.
	over    bool
	failure error

	// settlements holds finished effects; the first ones are already taken, the rest
	// are not journalled yet. wake is signalled when a settlement or a command
	// arrives, when the driver leaves, or when the alarm changes.
	mu          sync.Mutex
	settlements []settlement
	taken       int
	wake        chan struct{}
}

func newDriverLock() driverLock {
	return driverLock{free: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
}

func (t *driverLock) unlock() { t.free <- struct{}{} }
func (t *driverLock) lock()   { <-t.free }

func (t *driverLock) tryLock() bool {
	select {
	case <-t.free:
		return true
	default:
		return false
	}
}

// notify wakes the driver's goroutine, now or when it next waits.
func (t *driverLock) notify() { signal(t.wake) }

func (t *driverLock) push(s settlement) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settlements = append(t.settlements, s)
}

// next returns the first settlement that is not taken.
func (t *driverLock) next() (s settlement, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken == len(t.settlements) {
		t.settlements, t.taken = t.settlements[:0], 0
		return settlement{}, false
	}
	s, t.settlements[t.taken] = t.settlements[t.taken], settlement{}
	t.taken++
	return s, true
}

// leave settles what is under way and releases the run.
func (d *driver) leave(work context.Context) error {
	err := d.lock.failure
	_, store := errors.AsType[*storeError](err)
	d.life.broken = err != nil && !store
	late := d.effects.finish()
	if d.life.broken {
		err = d.endInternal(work, err, late)
	} else {
		d.result.final = d.machine.State()
	}
	d.log.lease.release(work)
	d.engine.keeper.Left(d.run.id, d.log.seq, d.log.head, d.machine)
	return err
}

// finish cleans up when a driver leaves; err is the engine's own failure.
func (d *driver) finish(err error) {
	defer close(d.result.done) // even if code of others ends the goroutine here
	defer d.life.interrupt(nil)
	defer d.env.Deltas.Close()
	d.result.err = err
	d.engine.unregister(d)
	ctx := context.WithoutCancel(d.life.ctx)
	_, broken := errors.AsType[*storeError](err)
	switch {
	case err == nil && d.result.final.Phase == machine.Parked:
		d.result.err = d.engine.checkInboxAgain(ctx, d)
	case broken && d.log.lease.released: // the store works again
		clear(d.inbox.seen) // the commands that were taken are not in the journal
		_ = d.engine.checkInboxAgain(ctx, d)
	}
	left := d.result.err
	d.result.err = errors.Join(left, errEndedClosing) // this remains if closing ends the goroutine
	d.result.err = errors.Join(left, d.closeEnv())
}

// checkInboxAgain answers the commands that arrived while a driver was leaving.
func (e *Engine) checkInboxAgain(ctx context.Context, d *driver) error {
	a := answers{seen: d.inbox.seen, refused: map[int64]bool{}, secrets: d.knownSecrets()}
	if news, err := e.unseen(ctx, d.run.id, &a); err != nil || !news {
		return err
	}
	err := e.answer(ctx, d.run.id, &a)
	if a.machine != nil {
		d.machine, d.result.final, d.result.overtook = a.machine, a.machine.State(), true
	}
	return err
}

var errEndedClosing = errors.New("engine: what closes the run's environment ended its goroutine (runtime.Goexit)")

// closeEnv releases the run's environment once no effect uses it.
func (d *driver) closeEnv() error {
	if d.env.Close == nil {
		return nil
	}
	return d.effects.closing(d.env.Release)
}
