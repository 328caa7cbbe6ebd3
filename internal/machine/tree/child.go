package tree

import "github.com/pawlrun/pawl/event"

// Child is the state of a run that another one started.
type Child struct {
	event.ChildStarted
	// Parked describes what the child waits for, nil while it runs. Waiting reports
	// whether a running child waits for a person.
	Parked  *event.ChildParked
	Waiting bool
	Outcome *event.Outcome
}

// Apply folds an event about the child, or run.resumed, after which the child must be
// driven again.
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
