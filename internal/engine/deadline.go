package engine

import (
	"context"
	"sync"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/machine"
)

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
