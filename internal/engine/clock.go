package engine

import (
	"sync"
	"time"
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
