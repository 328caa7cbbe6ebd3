package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
)

// grace is how long an effect may take to return after its context ended; then
// it is settled without waiting for it.
const grace = 5 * time.Second

// errTimeout is the cause when an effect's own time is over; [outOfTime] is that
// of a limit on the run's.
var errTimeout = errors.New("timeout")

// pendingEffect is an effect under way. It is settled exactly once: by its own
// return, or by the driver's patience after its context ended.
type pendingEffect struct {
	cancel context.CancelFunc

	mu      sync.Mutex
	settled bool
	patient *time.Timer
}

// settlement is what became of an effect; data is empty when there is nothing
// to tell.
type settlement struct {
	effect    string
	data      []event.Data
	abandoned bool
}

// effect is something that the driver does in the world while others may have
// the lock.
type effect struct {
	id string
	// before is what comes before do, each on a stack that has nothing of the others.
	before []func(context.Context)
	// do must return soon after its context ends, and must not panic; nor may what comes
	// before.
	do func(context.Context) []event.Data
	// unhurried says that do takes the time that it takes to return, because what
	// it waits for is bounded by itself.
	unhurried bool
	// giveUp is what is journalled when do does not return.
	giveUp func(ctx context.Context, why error) []event.Data
}

// The reasons for giving an effect up.
var (
	errNoReturn = errors.New("it did not return after it was told to stop")
	errVanished = errors.New("it ended its goroutine without returning")
)

// launch makes an effect ready to begin under a context of its own.
func (d *driver) launch(ctx context.Context, cancel context.CancelFunc, e effect) {
	f := &pendingEffect{cancel: cancel}
	d.pending[e.id] = f
	d.running.Add(1)
	unwatch := func() bool { return true }
	if !e.unhurried {
		unwatch = context.AfterFunc(ctx, func() { d.losePatience(ctx, f, e) })
	}
	landed := func() (first bool) {
		unwatch()
		cancel()
		d.running.Done()
		return f.settle()
	}
	perform := func(part func(context.Context), then job) job {
		returned := false
		defer func() {
			if returned {
				return
			}
			data := e.giveUp(ctx, errVanished)
			if landed() {
				d.report(settlement{effect: e.id, data: data})
			}
		}()
		part(ctx)
		returned = true
		return then
	}
	var data []event.Data
	next := func() job {
		if !landed() {
			return nil
		}
		return d.carryOn(settlement{effect: e.id, data: data})
	}
	for _, part := range slices.Backward(append(e.before, func(ctx context.Context) { data = e.do(ctx) })) {
		then := next
		next = func() job { return perform(part, then) }
	}
	d.launched = append(d.launched, next)
}

// losePatience gives an effect up whose context has ended and that does not return.
func (d *driver) losePatience(ctx context.Context, f *pendingEffect, e effect) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settled {
		return
	}
	f.patient = time.AfterFunc(grace, func() {
		if f.settle() {
			d.report(settlement{effect: e.id, data: e.giveUp(ctx, errNoReturn), abandoned: true})
		}
	})
}

// once notes that an effect is to begin whose action stays due, and reports whether it was
// not noted before.
func (d *driver) once(effect string) bool {
	if d.underWay[effect] {
		return false
	}
	if d.underWay == nil {
		d.underWay = map[string]bool{}
	}
	d.underWay[effect] = true
	return true
}

// settle reports whether the caller is the one to settle the effect.
func (f *pendingEffect) settle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settled {
		return false
	}
	f.settled = true
	if f.patient != nil {
		f.patient.Stop()
	}
	return true
}

// cancelPending tells every effect to stop. They settle in their own time.
func (d *driver) cancelPending() {
	for _, f := range d.pending {
		f.cancel()
	}
}

// land stops every effect and waits until each has settled, which grace
// bounds. One that was launched and has not begun begins stopped, because nothing
// else settles it. What they brought is returned, not journalled.
func (d *driver) land() []event.Data {
	var data []event.Data
	d.cancelPending()
	d.begin(false)
	for {
		for s, ok := d.lock.next(); ok; s, ok = d.lock.next() {
			d.landed(s)
			data = append(data, s.data...)
		}
		if len(d.pending) == 0 {
			return data
		}
		<-d.lock.wake
	}
}

func (d *driver) landed(s settlement) {
	delete(d.pending, s.effect)
	delete(d.underWay, s.effect)
	d.unask(s.effect)
	d.reserving = d.reserving && s.effect != reserveEffect
	d.abandoned = d.abandoned || s.abandoned
}

// guard calls code of others and turns a panic into the error that failed
// makes of it. An error that the code gives is read here as well, because its
// methods are code of others, too: a nil pointer of an error type is one whose
// message panics.
func guard[T any](call func() (T, error), failed func(message string) error) (v T, err error) {
	deed := "panicked: "
	defer func() {
		if p := recover(); p != nil {
			err = failed(fmt.Sprint(deed, p))
		}
	}()
	if v, err = call(); err != nil {
		deed = fmt.Sprintf("gave an error of type %T that panicked when it was read: ", err)
		read(err)
	}
	return v, err
}

// read does to an error what is done to errors later on.
func read(err error) {
	_ = err.Error()
	_ = errors.Is(err, context.Canceled)
}

// PanicError is a defect: a machine or the engine itself panicked. The run has
// ended with reason internal.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names what was panicked with; the stack is for who reports the defect.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

func newPanicError(p any) *PanicError { return &PanicError{Value: p, Stack: debug.Stack()} }
