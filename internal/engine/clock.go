package engine

import (
	"context"
	"sync"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/machine"
)

// clock is the time of one run as its driver reads it. It never goes back. If
// the machine's clock is set back, or an earlier driver's clock was ahead, the
// run's time continues from the latest time in its journal, at the normal pace,
// until the machine's clock has caught up. So waits, limits and expiries, which
// follow from journalled times, take as long as intended. A clock that is set
// forward is followed, because after a machine's sleep it is right; the next
// event then records how much was skipped, and the skipped time counts towards
// no limit (during a sleep the monotonic time of a process stands still on Linux
// and macOS).
//
// It is safe for concurrent use.
type clock struct {
	machine func() time.Time

	mu sync.Mutex
	// last is the latest reading, and when is its time on the process's monotonic
	// clock, which cannot be set.
	last, when time.Time
	// skipped is what the clock has skipped since the last event.
	skipped time.Duration
	// slept is what it has skipped in all.
	slept time.Duration
}

// leap is how far the machine's clock must run ahead of the process's monotonic
// clock to count as a skip. A smaller difference is a correction.
const leap = 2 * time.Second

func newClock(machine func() time.Time) *clock { return &clock{machine: machine} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read()
}

// stamp returns the time of a new event, and what was skipped since the previous
// one.
func (c *clock) stamp() (at time.Time, skipped time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, skipped = c.read(), c.skipped
	c.skipped = 0
	return at, skipped
}

// counted returns the time without what was skipped since the last event. Limits
// that count from that event use it.
func (c *clock) counted() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read().Add(-c.skipped)
}

// awake returns the time without all that was skipped. The difference of two
// readings is a duration.
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

// goOnFrom makes the clock show no time before t. The run was not driven in
// between, so that time is not skipped.
func (c *clock) goOnFrom(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read(); wall(c.last).Before(wall(t)) {
		c.last = t
	}
}

// wall strips the monotonic reading, so that two times compare by what they
// show.
func wall(t time.Time) time.Time { return t.Round(0) }

// until bounds a context by the run's deadline, measured on the run's clock, and
// by a timeout, 0 for none. The deadline moves with progress and with a changed
// limit, and a run without one may get one (see [deadlines]); the timeout does
// not move.
func (s *effects) until(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, _, release := s.stoppable(ctx, timeout)
	return ctx, release
}

// stoppable is until with a cancel function that takes a cause.
func (s *effects) stoppable(ctx context.Context, timeout time.Duration) (_ context.Context, cancel context.CancelCauseFunc, release func()) {
	stop := func() {}
	if timeout > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, timeout, errTimeout)
	}
	ctx, end := context.WithCancelCause(ctx)
	s.deadlines.addDeadline(&end)
	return ctx, end, func() {
		s.deadlines.release(&end)
		end(nil)
		stop()
	}
}

// outOfTime is the cause for which effects end at a limit on the run's time.
type outOfTime struct {
	setting string
	// asks reports whether the run parks there so that the limit can be raised.
	asks bool
}

func (e outOfTime) Error() string {
	if e.setting == budget.IdleTime {
		return "nothing new had come of the run for as long as " + e.setting + " allows"
	}
	return "the run's wall time is used up"
}

// deadlines ends the effects under way when a limit on the run's time is
// reached, which is the same time for all of them. It is safe for concurrent
// use.
type deadlines struct {
	mu      sync.Mutex
	effects map[*context.CancelCauseFunc]struct{}
	// deadline is zero for none. timer waits for it and is nil after it has fired. A
	// timer for an earlier deadline ends nothing, even if it fires while the
	// deadline moves.
	deadline machine.Deadline
	timer    *time.Timer
}

func (s *deadlines) addDeadline(end *context.CancelCauseFunc) {
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

// move sets the deadline of the effects under way, zero for none. An effect that
// has ended stays ended.
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

// stop removes the deadline.
func (s *deadlines) stop() { s.move(machine.Deadline{}, time.Now) }
