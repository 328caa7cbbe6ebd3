package perform

import (
	"sync"
	"time"
)

// Clock is the time of one run as its driver reads it. It never goes back. If
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
type Clock struct {
	machine func() time.Time

	mu sync.Mutex
	// last is the latest reading, and when is its time on the process's monotonic
	// clock, which cannot be set.
	last, when time.Time
	// skipped is how much time the clock has skipped since the last event.
	skipped time.Duration
	// slept is the total time that the clock has skipped.
	slept time.Duration
}

// leap is how far the machine's clock must run ahead of the process's monotonic
// clock to count as a skip. A smaller difference is a correction.
const leap = 2 * time.Second

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read()
}

// Stamp returns the time of a new event, and how much was skipped since the previous
// one.
func (c *Clock) Stamp() (at time.Time, skipped time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, skipped = c.read(), c.skipped
	c.skipped = 0
	return at, skipped
}

// Counted returns the time minus the time skipped since the last event. Limits that
// count from that event use it.
func (c *Clock) Counted() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read().Add(-c.skipped)
}

// Awake returns the time minus all skipped time. The difference of two readings is a
// duration.
func (c *Clock) Awake() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := wall(c.read())
	return t.Add(-c.slept)
}

func (c *Clock) read() time.Time {
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

// GoOnFrom makes the clock show no time before t. The run was not driven in
// between, so that time is not skipped.
func (c *Clock) GoOnFrom(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read(); wall(c.last).Before(wall(t)) {
		c.last = t
	}
}

// wall strips the monotonic reading, so that two times compare by what they
// show.
func wall(t time.Time) time.Time { return t.Round(0) }
