package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
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

// effects are those of one run. What they share with the goroutines on which they are
// done is safe for concurrent use; the rest belongs to who has the driver's lock.
type effects struct {
	lock *driverLock
	// carryOn does what follows from a settlement, and returns what is due then.
	carryOn func(settlement) job
	// queue are those that may start after the next commit.
	queue []func(work context.Context)
	// pending are those that have started, by id, and launched what of them has not
	// begun. The driver never leaves before every effect has been settled.
	pending  map[string]*pendingEffect
	launched []job
	// underWay are those whose action stays due while they are queued or pending.
	underWay map[string]bool
	// ended counts those that have been settled since the last commit, and abandoned
	// says that one was given up that has not returned.
	ended     int
	abandoned bool
	running   sync.WaitGroup
	workers   workers
	deadlines deadlines
}

// add queues an effect, to start after the next commit.
func (s *effects) add(start func(work context.Context)) { s.queue = append(s.queue, start) }

// start starts what is queued.
func (s *effects) start(work context.Context) {
	for _, start := range s.queue {
		start(work)
	}
	clear(s.queue)
	s.queue = s.queue[:0]
}

// pendingEffect is an effect under way. It is settled exactly once: by its own
// return, or by the driver some time after its context ended.
type pendingEffect struct {
	effect
	set *effects
	ctx context.Context
	// cancel stops it, and release lets go of its context once it has returned.
	cancel, release context.CancelFunc
	// unwatch ends the watch over ctx, and next does the part that comes next.
	unwatch func() bool
	next    job
	// begun is how many parts of it have begun, and data what it brought.
	begun int
	data  []event.Data

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
func (s *effects) launch(ctx context.Context, cancel context.CancelFunc, e effect) {
	f := &pendingEffect{effect: e, set: s, ctx: ctx, cancel: cancel, release: cancel}
	f.next = f.perform
	s.pending[e.id] = f
	s.running.Add(1)
	if !e.unhurried {
		f.unwatch = context.AfterFunc(ctx, f.giveUpLater)
	}
	s.launched = append(s.launched, f.next)
}

// perform does the part of an effect that comes next. Each is a job of its own, so that
// a stack has nothing of those before. Behind the last the effect is settled.
func (f *pendingEffect) perform() job {
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
		data := f.giveUp(f.ctx, errVanished)
		if f.returned() {
			f.set.report(settlement{effect: f.id, data: data})
		}
	}()
	if part < len(f.before) {
		f.before[part](f.ctx)
	} else {
		f.data = f.do(f.ctx)
	}
	done = true
	return f.next
}

// returned notes that an effect has returned, and reports whether it is the first to
// settle it.
func (f *pendingEffect) returned() bool {
	if f.unwatch != nil {
		f.unwatch()
	}
	f.release()
	f.set.running.Done()
	return f.claim()
}

// giveUpLater gives an effect up after a while whose context has ended and that does not return.
func (f *pendingEffect) giveUpLater() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settled {
		return
	}
	f.patient = time.AfterFunc(grace, func() {
		if f.claim() {
			f.set.report(settlement{effect: f.id, data: f.giveUp(f.ctx, errNoReturn), abandoned: true})
		}
	})
}

// mark notes that an effect is to begin whose action stays due until it is settled.
func (s *effects) mark(effect string) {
	if s.underWay == nil {
		s.underWay = map[string]bool{}
	}
	s.underWay[effect] = true
}

// claim settles the effect for the caller, and fails where it is settled.
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

// cancelPending tells every effect to stop. They settle in their own time.
func (s *effects) cancelPending() {
	for _, f := range s.pending {
		f.cancel()
	}
}

// stop stops one effect, where it is pending, and reports whether it is.
func (s *effects) stop(id string) bool {
	f := s.pending[id]
	if f != nil {
		f.cancel()
	}
	return f != nil
}

// forget drops an effect that has been settled.
func (s *effects) forget(of settlement) {
	delete(s.pending, of.effect)
	delete(s.underWay, of.effect)
	s.abandoned = s.abandoned || of.abandoned
	s.ended++
}

// finish stops every effect and waits until each has settled, which grace
// bounds. One that was launched and has not begun begins stopped, because nothing
// else settles it. What they brought is returned, not journalled.
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
			s.workers.stop()
			s.deadlines.stop()
			return data
		}
		<-s.lock.wake
	}
}

// closing calls what releases what the effects use once none does any more. One that
// was given up may still use it, and is waited for in the background.
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

// begin does the effects that were launched, each on a goroutine of its own. The
// last one is returned instead where the caller has a goroutine for it.
func (s *effects) begin(keepLast bool) (last job) {
	launched := s.launched
	if n := len(launched); keepLast && n > 0 {
		launched, last = launched[:n-1], launched[n-1]
	}
	for _, effect := range launched {
		s.workers.do(effect)
	}
	clear(s.launched)
	s.launched = s.launched[:0]
	return last
}

// report brings a settlement to the driver's goroutine.
func (s *effects) report(of settlement) {
	s.lock.push(of)
	s.lock.notify()
}

// job is an effect, which returns what is to be done next on its goroutine, nil
// for nothing.
type job func() (next job)

// workers are the goroutines on which a run's effects are done. One that has
// returned waits for the next effect, because a new one would have to grow its
// stack again: a model call goes deep, and comes once a cycle.
type workers struct {
	work chan job
	over chan struct{}
}

func newWorkers() workers { return workers{work: make(chan job), over: make(chan struct{})} }

// do does an effect on a goroutine that is free, or else on a new one. An
// effect that ends its goroutine takes nobody else with it.
func (c *workers) do(work job) {
	select {
	case c.work <- work:
	default:
		go c.serve(work)
	}
}

func (c *workers) serve(work job) {
	for {
		for work != nil {
			work = work()
		}
		select {
		case work = <-c.work:
		case <-c.over:
			return
		}
	}
}

// stop lets go of those who are free, and of the others once they are.
func (c *workers) stop() { close(c.over) }

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
