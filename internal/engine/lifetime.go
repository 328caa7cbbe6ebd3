package engine

import (
	"context"
	"errors"
	"sync"
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

// driverLock is what a driver's state belongs to: whoever has it does what is due, and
// nobody else touches the run meanwhile.
//
// The driver's own goroutine has it from the start, and gives it up only while
// it waits for what comes from outside. An effect that has ended takes the lock,
// if nobody has it, and goes on with what follows on the goroutine that did the
// effect. To hand each answer to the driver's goroutine, and each effect to
// another one, is four wake-ups a cycle, and as many caches that are cold.
type driverLock struct {
	free chan struct{}
	// over says that the driver leaves, failure why, if it does not leave
	// because nothing is left to do. From then on the lock stays with the
	// driver's own goroutine.
	over    bool
	failure error

	// settlements are the effects that have ended and whose settlement is not
	// journalled yet, behind as many as were taken up already. news wakes the driver's goroutine: for them, for
	// commands, because it is over, or because there is another moment to wait for.
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
func (t *driverLock) notify() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *driverLock) push(s settlement) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settlements = append(t.settlements, s)
}

// next takes the first of what was brought.
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

// leave settles what is under way and gives the run up.
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
	return err
}

// finish is what is done when a driver leaves, with the engine's own failure.
func (d *driver) finish(err error) {
	defer close(d.result.done) // whatever ends the goroutine here
	defer d.env.live.source.Close()
	d.result.err = err
	d.engine.unregister(d)
	ctx := context.WithoutCancel(d.life.ctx)
	_, broken := errors.AsType[*storeError](err)
	switch {
	case err == nil && d.result.final.Phase == machine.Parked:
		d.result.err = d.engine.lookOnceMore(ctx, d)
	case broken && d.log.lease.released: // the store has come back
		clear(d.inbox.seen) // what was taken up is not in the journal
		_ = d.engine.lookOnceMore(ctx, d)
	}
	left := d.result.err
	d.result.err = errors.Join(left, errEndedClosing) // what stays if closing ends the goroutine
	d.result.err = errors.Join(left, d.closeEnv())
}

// lookOnceMore answers the commands that came while a driver was leaving.
func (e *Engine) lookOnceMore(ctx context.Context, d *driver) error {
	a := answers{seen: d.inbox.seen, refused: map[int64]bool{}, secrets: d.env.knownSecrets()}
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

// closeEnv releases the run's environment once no effect uses it any more.
func (d *driver) closeEnv() error {
	if d.env.Close == nil {
		return nil
	}
	return d.effects.closing(d.env.close)
}
