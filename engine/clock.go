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
// set forward is followed, because after a machine's sleep it is right.
//
// It is safe for concurrent use.
type clock struct {
	machine func() time.Time

	mu sync.Mutex
	// last is what was read last, at when by the time of this process, which
	// nobody sets.
	last, when time.Time
}

func newClock(machine func() time.Time) *clock { return &clock{machine: machine} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, when := c.machine(), time.Now()
	if wall(t).Before(wall(c.last)) {
		t = c.last.Add(when.Sub(c.when))
	}
	c.last, c.when = t, when
	return t
}

// goOnFrom has the clock show no time before t.
func (c *clock) goOnFrom(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wall(c.last).Before(wall(t)) {
		c.last, c.when = t, time.Now()
	}
}

// wall is a time as clocks on the wall show it: two of them compare by what
// they show, not by what passed between their readings.
func wall(t time.Time) time.Time { return t.Round(0) }
