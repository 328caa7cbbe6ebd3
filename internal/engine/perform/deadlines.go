package perform

import (
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/machine"
)

// Deadlines ends the effects under way when a limit on the run's time is reached, which is
// the same time for all of them, and each when its own timeout is over. The limit is
// measured on the run's clock; it moves with progress and with a changed setting. A
// Deadlines is safe for concurrent use.
type Deadlines struct {
	mu sync.Mutex
	// effects holds when the timeout of each is over, zero for none.
	effects map[Stoppable]time.Time
	// deadline is zero for none. timer waits for it and is nil after it has fired. A
	// timer for an earlier deadline ends nothing, even if it fires while the
	// deadline moves.
	deadline machine.Deadline
	timer    *time.Timer
	// alarm fires at next, the first end of a timeout, zero for none.
	alarm *time.Timer
	next  time.Time
}

// Stoppable is an effect under way. Stop must not call the Deadlines.
type Stoppable interface{ Stop(cause error) }

// Add adds an effect, whose timeout begins, and returns when it is over. A timeout of 0
// is none.
func (s *Deadlines) Add(f Stoppable, timeout time.Duration) (until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.effects == nil {
		s.effects = map[Stoppable]time.Time{}
	}
	if timeout > 0 {
		now := time.Now()
		until = now.Add(timeout)
		s.wakeAt(until, now)
	}
	s.effects[f] = until
	if !s.deadline.At.IsZero() && s.timer == nil {
		f.Stop(OutOfTime{Setting: s.deadline.Setting, Asks: s.deadline.Asks})
	}
	return until
}

func (s *Deadlines) wakeAt(at, now time.Time) {
	switch {
	case !s.next.IsZero() && !at.Before(s.next):
		return
	case s.alarm == nil:
		s.alarm = time.AfterFunc(at.Sub(now), s.timeOut)
	default:
		s.alarm.Reset(at.Sub(now))
	}
	s.next = at
}

// timeOut ends the effects whose timeout is over.
func (s *Deadlines) timeOut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = time.Time{}
	now := time.Now()
	for f, until := range s.effects {
		switch {
		case until.IsZero():
		case until.After(now):
			s.wakeAt(until, now)
		default:
			f.Stop(ErrTimeout)
		}
	}
}

// Release removes an effect that has returned.
func (s *Deadlines) Release(f Stoppable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.effects, f)
}

// Move sets the deadline of the effects under way, zero for none. An effect that
// has ended stays ended.
func (s *Deadlines) Move(to machine.Deadline, now func() time.Time) {
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

func (s *Deadlines) passed(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.deadline.At.Equal(at) {
		return
	}
	s.timer = nil
	for f := range s.effects {
		f.Stop(OutOfTime{Setting: s.deadline.Setting, Asks: s.deadline.Asks})
	}
}

// Stop stops the timers.
func (s *Deadlines) Stop() {
	s.Move(machine.Deadline{}, time.Now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alarm != nil {
		s.alarm.Stop()
	}
}
