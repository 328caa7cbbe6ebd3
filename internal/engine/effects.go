package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
)

// effects holds the effects of one run. What it shares with the goroutines of
// effects is safe for concurrent use; the driver's lock protects the rest.
type effects struct {
	lock *driverLock
	// carryOn does what follows from a settlement, and returns an effect that is due
	// then.
	carryOn func(settlement) perform.Job
	// queue holds effects that may start after the next commit.
	queue []func(work context.Context)
	// pending holds the effects that have started, by id, and launched those among
	// them that have not begun. The driver never leaves before every effect has
	// settled.
	pending  map[string]*pendingEffect
	launched []perform.Job
	// underWay holds the effects whose action stays due while they are queued or
	// pending.
	underWay map[string]bool
	// ended counts the effects that have settled since the last commit. abandoned
	// reports whether an effect was given up that has not returned.
	ended     int
	abandoned bool
	running   sync.WaitGroup
	workers   perform.Workers
	deadlines perform.Deadlines
}

// add queues an effect, to start after the next commit.
func (s *effects) add(start func(work context.Context)) { s.queue = append(s.queue, start) }

// start starts the queued effects.
func (s *effects) start(work context.Context) {
	for _, start := range s.queue {
		start(work)
	}
	clear(s.queue)
	s.queue = s.queue[:0]
}

// pendingEffect is an effect under way, and its context. It settles exactly once: when it
// returns, or some time after its context ended.
type pendingEffect struct {
	effect
	set *effects
	context.Context
	end context.CancelCauseFunc
	// until is when the effect's own timeout ends it, zero for never.
	until time.Time
	// unwatch ends [perform.Effect.Watch], and next runs the next part.
	unwatch func()
	next    perform.Job
	// begun is how many parts have begun, and data the result.
	begun int
	data  []event.Data

	mu      sync.Mutex
	settled bool
	patient *time.Timer
}

// Deadline implements [context.Context]: the context has no timer of its own.
func (f *pendingEffect) Deadline() (time.Time, bool) { return f.until, !f.until.IsZero() }

// Err implements [context.Context].
func (f *pendingEffect) Err() error {
	err := f.Context.Err()
	if err != nil && context.Cause(f.Context) == perform.ErrTimeout {
		return context.DeadlineExceeded
	}
	return err
}

// settlement is the result of an effect; data is empty if there is nothing to
// journal.
type settlement struct {
	effect    string
	data      []event.Data
	abandoned bool
	// noted is closed once data is committed. The effect goes on, as it does if then is
	// set, which the driver calls.
	noted chan struct{}
	then  func() error
}

// effect is something that the driver does in the world without holding the
// lock.
type effect struct {
	id string
	perform.Effect
	// before holds the parts before Do; each runs on a stack of its own. They must
	// return soon after their context ends, and must not panic.
	before []func(context.Context)
	// untimed reports whether the run's limits on time do not end the effect.
	untimed bool
	// why returns the cause with which the run stops the effect, if it is set.
	why func() error
}

// work is [perform.Work] by two functions.
type work struct {
	do     func(context.Context) []event.Data
	giveUp func(ctx context.Context, why error) []event.Data
}

func (w work) Do(ctx context.Context) []event.Data                { return w.do(ctx) }
func (w work) GiveUp(ctx context.Context, why error) []event.Data { return w.giveUp(ctx, why) }

// The reasons for giving up an effect.
var (
	errNoReturn = errors.New("it did not return after it was stopped")
	errVanished = errors.New("it ended its goroutine without returning")
)

// launch prepares an effect to begin under a context of its own.
func (s *effects) launch(work context.Context, e effect) *pendingEffect {
	f := &pendingEffect{effect: e, set: s}
	f.Context, f.end = context.WithCancelCause(work)
	f.next = f.perform
	if e.Watch != nil {
		f.unwatch = e.Watch(f.Stop)
	}
	s.pending[e.id] = f
	s.running.Add(1)
	if !e.untimed {
		f.until = s.deadlines.Add(f, e.Timeout)
	}
	s.launched = append(s.launched, f.next)
	return f
}

// perform runs the next part of an effect. Each part is a job of its own, so
// that its stack holds nothing of those before. After the last part the effect
// settles.
func (f *pendingEffect) perform() perform.Job {
	part := f.begun
	f.begun++
	if part > len(f.before) {
		if !f.returned() {
			return nil
		}
		return f.set.carryOn(settlement{effect: f.id, data: f.data})
	}
	done := false
	defer func() {
		if done {
			return
		}
		data := f.GiveUp(f, errVanished)
		if f.returned() {
			f.set.report(settlement{effect: f.id, data: data})
		}
	}()
	if part < len(f.before) {
		f.before[part](f)
	} else {
		f.data = f.Do(f)
	}
	done = true
	return f.next
}

// returned notes that an effect has returned, and reports whether that settles
// it.
func (f *pendingEffect) returned() bool {
	if f.unwatch != nil {
		f.unwatch()
	}
	f.set.deadlines.Release(f)
	f.end(nil)
	f.set.running.Done()
	return f.claim()
}

// Stop ends the effect's context. An effect that does not return within the grace
// period is given up.
func (f *pendingEffect) Stop(cause error) {
	f.end(cause)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Unhurried || f.settled || f.patient != nil {
		return
	}
	f.patient = time.AfterFunc(perform.Grace, func() {
		if f.claim() {
			f.set.report(settlement{effect: f.id, data: f.GiveUp(f, errNoReturn), abandoned: true})
		}
	})
}

// cancel stops the effect because the run does.
func (f *pendingEffect) cancel() {
	var why error
	if f.why != nil {
		why = f.why()
	}
	f.Stop(why)
}

// mark notes that an effect is queued whose action stays due until it settles.
func (s *effects) mark(effect string) {
	if s.underWay == nil {
		s.underWay = map[string]bool{}
	}
	s.underWay[effect] = true
}

// claim reserves the settlement of the effect for the caller. It returns false
// if the effect has settled.
func (f *pendingEffect) claim() bool {
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

// cancelPending cancels every effect. Each settles when it returns.
func (s *effects) cancelPending() {
	for _, f := range s.pending {
		f.cancel()
	}
}

// stop cancels one effect, and reports whether it was pending.
func (s *effects) stop(id string) bool {
	f := s.pending[id]
	if f != nil {
		f.cancel()
	}
	return f != nil
}

// forget drops an effect that has settled.
func (s *effects) forget(of settlement) {
	delete(s.pending, of.effect)
	delete(s.underWay, of.effect)
	if of.noted != nil {
		s.add(func(context.Context) { close(of.noted) })
	}
	s.abandoned = s.abandoned || of.abandoned
	s.ended++
}

// finish cancels every effect and waits until each has settled, which grace
// bounds. An effect that was launched but has not begun begins cancelled,
// because nothing else settles it. finish returns the results and does not
// journal them.
func (s *effects) finish() []event.Data {
	var data []event.Data
	s.cancelPending()
	s.begin(false)
	for {
		for of, ok := s.lock.next(); ok; of, ok = s.lock.next() {
			s.forget(of)
			data = append(data, of.data...)
		}
		if len(s.pending) == 0 {
			s.workers.Stop()
			s.deadlines.Stop()
			return data
		}
		<-s.lock.wake
	}
}

// closing calls release when no effect is left that may use what it releases.
// For an effect that was given up it waits in the background.
func (s *effects) closing(release func() error) error {
	if s.abandoned {
		go func() {
			s.running.Wait()
			_ = release()
		}()
		return nil
	}
	s.running.Wait()
	return release()
}

// begin runs the launched effects, each on a goroutine of its own. With keepLast
// it returns the last one instead, for the caller's goroutine.
func (s *effects) begin(keepLast bool) (last perform.Job) {
	launched := s.launched
	if n := len(launched); keepLast && n > 0 {
		launched, last = launched[:n-1], launched[n-1]
	}
	for _, effect := range launched {
		s.workers.Do(effect)
	}
	clear(s.launched)
	s.launched = s.launched[:0]
	return last
}

// report delivers a settlement to the driver's goroutine.
func (s *effects) report(of settlement) {
	s.lock.push(of)
	s.lock.notify()
}

// note journals data about an effect that goes on, and returns once it is committed.
func (s *effects) note(ctx context.Context, data ...event.Data) error {
	noted := make(chan struct{})
	s.report(settlement{data: data, noted: noted})
	select {
	case <-noted:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// PanicError is a defect: a machine or the engine itself panicked. The run has
// ended with reason internal.
type PanicError struct {
	Value any
	Stack []byte
}

// Error contains the panic's value; the stack is for a report of the defect.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }
