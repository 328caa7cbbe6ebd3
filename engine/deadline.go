package engine

import (
	"context"
	"math"
	"sync"
	"time"
)

// until bounds a context by the run's deadline, measured on the run's clock,
// and by a timeout, whichever comes first; either may be zero. The deadline
// moves when the run is given more time (see [deadlines]), the timeout does not.
func (d *driver) until(ctx context.Context, deadline time.Time, timeout time.Duration) (context.Context, context.CancelFunc) {
	left := time.Duration(math.MaxInt64)
	if !deadline.IsZero() {
		left = max(deadline.Sub(d.now()), 0)
	}
	switch {
	case !deadline.IsZero() && (timeout == 0 || left < timeout):
		return d.deadlines.bound(ctx, left, timeout)
	case timeout == 0:
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, errTimeout)
}

// deadlines are the contexts of effects under way that end with the run's wall
// time. It is safe for concurrent use.
type deadlines struct {
	mu     sync.Mutex
	timers map[*time.Timer]struct{}
}

// bound ends a context when the wall time that is left now is used up, or after
// a timeout if that comes first once the wall time is longer; 0 is none.
func (s *deadlines) bound(ctx context.Context, left, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	stop := func() {}
	if timeout > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, timeout, errTimeout)
	}
	timer := time.AfterFunc(left, func() { end(errWallTime) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timers == nil {
		s.timers = map[*time.Timer]struct{}{}
	}
	s.timers[timer] = struct{}{}
	return ctx, func() {
		s.mu.Lock()
		delete(s.timers, timer)
		s.mu.Unlock()
		timer.Stop()
		stop()
		end(nil)
	}
}

// move gives the effects under way the time that is left now; limited is false
// when there is no limit any more. What has ended already stays ended.
func (s *deadlines) move(left time.Duration, limited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for timer := range s.timers {
		if limited {
			timer.Reset(left)
		} else {
			timer.Stop()
		}
	}
}

// moveDeadlines follows a limit that was changed while effects are under way.
func (d *driver) moveDeadlines() {
	at := d.machine.State().Deadline
	d.deadlines.move(max(at.Sub(d.now()), 0), !at.IsZero())
}
