package tree

import "github.com/pawlrun/pawl/event"

// Child is how a run stands that another one started.
type Child struct {
	event.ChildStarted
	// Parked is what it waits for, nil while it goes. Waiting says that it goes, and
	// waits for a person.
	Parked  *event.ChildParked
	Waiting bool
	Outcome *event.Outcome
}

// Apply folds an event about the child, or that its run was resumed: no process
// drives it any more, and it is taken up again.
func (c *Child) Apply(d event.Data) {
	switch d := d.(type) {
	case event.ChildParked:
		c.Parked, c.Waiting = &d, false
	case event.ChildWaiting:
		if !d.Waiting {
			c.Parked = nil
		}
		c.Waiting = d.Waiting
	case event.ChildFinished:
		c.Outcome = &d.Outcome
	case event.RunResumed:
		c.Parked, c.Waiting = nil, false
	}
}
