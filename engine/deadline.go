package engine

import (
	"context"
	"sync"
	"time"
)

// until bounds a context by the run's deadline, measured on the run's clock,
// and by a timeout, whichever comes first; either may be zero. The deadline
// moves when a limit is changed, and may come to a run that had none (see
// [deadlines]); the timeout does not move.
func (d *driver) until(ctx context.Context, deadline time.Time, timeout time.Duration) (context.Context, context.CancelFunc) {
	stop := func() {}
	if timeout > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, timeout, errTimeout)
	}
	ctx, end := context.WithCancelCause(ctx)
	d.deadlines.move(deadline, d.now)
	d.deadlines.hold(&end)
	return ctx, func() {
		d.deadlines.release(&end)
		end(nil)
		stop()
	}
}

// deadlines end the effects under way when the run's wall time is used up,
// which is one moment for all of them. It is safe for concurrent use.
type deadlines struct {
	mu      sync.Mutex
	effects map[*context.CancelCauseFunc]struct{}
	// at is the deadline, zero for none, and timer what waits for it, nil once
	// it has gone off. One that waited for another deadline ends nothing, even
	// if it went off at the moment that the deadline moved.
	at    time.Time
	timer *time.Timer
}

func (s *deadlines) hold(end *context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.effects == nil {
		s.effects = map[*context.CancelCauseFunc]struct{}{}
	}
	s.effects[end] = struct{}{}
	if !s.at.IsZero() && s.timer == nil {
		(*end)(errWallTime)
	}
}

func (s *deadlines) release(end *context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.effects, end)
}

// move sets the deadline, zero for none, which effects under way follow. What
// has ended already stays ended.
func (s *deadlines) move(at time.Time, now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.Equal(at) {
		return
	}
	s.at = at
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if at.IsZero() {
		return
	}
	s.timer = time.AfterFunc(max(at.Sub(now()), 0), func() { s.passed(at) })
}

func (s *deadlines) passed(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.at.Equal(at) {
		return
	}
	s.timer = nil
	for end := range s.effects {
		(*end)(errWallTime)
	}
}

// moveDeadlines follows a limit that was changed while effects are under way.
func (d *driver) moveDeadlines() { d.deadlines.move(d.machine.State().Deadline, d.now) }
