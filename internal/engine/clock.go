package engine

import (
	"context"
	"sync"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/machine"
)

// clock is the time of one run as its driver reads it. It never goes back:
// where the clock of the machine is set back, or the run was driven before by
// one that was ahead, the run's time goes on from the latest that its journal
// has, at the pace at which time passes, until the machine's clock has come up
// with it. So what follows from journalled times, as waits, limits and
// expiries do, comes as late as it was said to, and no later. A clock that is
// set forward is followed, because after a machine's sleep it is right; but the
// next event says how much was skipped, which uses up no limit on the run's time
// (in a sleep the time of a process stands still, on Linux and macOS).
//
// It is safe for concurrent use.
type clock struct {
	machine func() time.Time

	mu sync.Mutex
	// last is what was read last, at when by the time of this process, which
	// nobody sets.
	last, when time.Time
	// skipped is what the clock has skipped since the last event.
	skipped time.Duration
	// slept is what it has skipped in all.
	slept time.Duration
}

// leap is how far the clock must run ahead of the time of this process to have
// skipped what lies between. Where it ran ahead by less, it was corrected.
const leap = 2 * time.Second

func newClock(machine func() time.Time) *clock { return &clock{machine: machine} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read()
}

// stamp is the time of an event, and what was skipped since the one before it.
func (c *clock) stamp() (at time.Time, skipped time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, skipped = c.read(), c.skipped
	c.skipped = 0
	return at, skipped
}

// counted is the time without what was skipped since the last event. It is by
// this that a limit which is counted from that event is reached.
func (c *clock) counted() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read().Add(-c.skipped)
}

// awake is the time without all that was skipped. What lies between two of its
// readings is how long something lasted.
func (c *clock) awake() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := wall(c.read())
	return t.Add(-c.slept)
}

func (c *clock) read() time.Time {
	t, when := c.machine(), time.Now()
	shown, passed := wall(t).Sub(wall(c.last)), when.Sub(c.when)
	switch {
	case c.when.IsZero():
	case shown < 0:
		t = c.last.Add(passed)
	case shown-passed >= leap:
		c.skipped += shown - passed
		c.slept += shown - passed
	}
	c.last, c.when = t, when
	return t
}

// goOnFrom has the clock show no time before t. What lies before, nobody drove
// the run; the clock has not skipped it.
func (c *clock) goOnFrom(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read(); wall(c.last).Before(wall(t)) {
		c.last = t
	}
}

// wall is a time as clocks on the wall show it: two of them compare by what
// they show, not by what passed between their readings.
func wall(t time.Time) time.Time { return t.Round(0) }

// until bounds a context by the run's deadline, measured on the run's clock,
// and by a timeout, 0 for none, whichever comes first. The deadline moves when
// something new comes or a limit is changed, and may come to a run that had
// none (see [deadlines]); the timeout does not move.
func (s *effects) until(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, _, release := s.stoppable(ctx, timeout)
	return ctx, release
}

// stoppable is until for what may also be stopped for a cause.
func (s *effects) stoppable(ctx context.Context, timeout time.Duration) (_ context.Context, cancel context.CancelCauseFunc, release func()) {
	stop := func() {}
	if timeout > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, timeout, errTimeout)
	}
	ctx, end := context.WithCancelCause(ctx)
	s.deadlines.hold(&end)
	return ctx, end, func() {
		s.deadlines.release(&end)
		end(nil)
		stop()
	}
}

// outOfTime is the cause for which effects end at a limit on the run's time.
type outOfTime struct {
	setting string
	// asks says that the run parks there to ask for more.
	asks bool
}

func (e outOfTime) Error() string {
	if e.setting == budget.IdleTime {
		return "nothing new had come of the run for as long as " + e.setting + " allows"
	}
	return "the run's wall time is used up"
}

// deadlines end the effects under way when a limit on the run's time is used
// up, which is one moment for all of them. It is safe for concurrent use.
type deadlines struct {
	mu      sync.Mutex
	effects map[*context.CancelCauseFunc]struct{}
	// deadline is zero for none, and timer what waits for it, nil once it has
	// gone off. One that waited for another deadline ends nothing, even if it
	// went off at the moment that the deadline moved.
	deadline machine.Deadline
	timer    *time.Timer
}

func (s *deadlines) hold(end *context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.effects == nil {
		s.effects = map[*context.CancelCauseFunc]struct{}{}
	}
	s.effects[end] = struct{}{}
	if !s.deadline.At.IsZero() && s.timer == nil {
		(*end)(outOfTime{setting: s.deadline.Setting, asks: s.deadline.Asks})
	}
}

func (s *deadlines) release(end *context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.effects, end)
}

// move sets the deadline, zero for none, which effects under way follow. What
// has ended already stays ended.
func (s *deadlines) move(to machine.Deadline, now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := s.deadline.At.Equal(to.At)
	s.deadline = to
	if same {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if to.At.IsZero() {
		return
	}
	s.timer = time.AfterFunc(max(to.At.Sub(now()), 0), func() { s.passed(to.At) })
}

func (s *deadlines) passed(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.deadline.At.Equal(at) {
		return
	}
	s.timer = nil
	for end := range s.effects {
		(*end)(outOfTime{setting: s.deadline.Setting, asks: s.deadline.Asks})
	}
}

// stop lets no effect end at a deadline any more.
func (s *deadlines) stop() { s.move(machine.Deadline{}, time.Now) }
