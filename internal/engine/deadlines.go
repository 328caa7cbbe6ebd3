package engine

import (
	"context"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
)

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
		ctx, stop = context.WithTimeoutCause(ctx, timeout, perform.ErrTimeout)
	}
	ctx, end := context.WithCancelCause(ctx)
	s.deadlines.addDeadline(&end)
	return ctx, end, func() {
		s.deadlines.release(&end)
		end(nil)
		stop()
	}
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
		(*end)(perform.OutOfTime{Setting: s.deadline.Setting, Asks: s.deadline.Asks})
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
		(*end)(perform.OutOfTime{Setting: s.deadline.Setting, Asks: s.deadline.Asks})
	}
}

// stop removes the deadline.
func (s *deadlines) stop() { s.move(machine.Deadline{}, time.Now) }
