package engine

import (
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
)

// core is what all parts of a driver share: they stage events for the next commit, and
// start effects after it.
type core struct {
	engine  *Engine
	machine machine.Machine
	run     identity
	env     environment
	log     eventLog
	effects effects
	alarm   alarm
	life    lifetime
}

// stage applies an event and queues it for the next commit. Nothing that
// follows from it may leave the process before that.
func (c *core) stage(data event.Data) error {
	s, err := c.log.seal(data)
	if err != nil {
		return err
	}
	c.log.applied = s.event
	if err := c.machine.Apply(&c.log.applied); err != nil {
		return fmt.Errorf("engine: run %s: %w", c.run.id, err)
	}
	c.log.push(s)
	switch data.(type) {
	case event.BudgetRaised, event.ToolResult, event.CommandFinished, event.BudgetCommitted, event.ChildWaiting: // a limit that is another, what may be news, a pause
		if len(c.effects.pending) > 0 {
			c.moveDeadlines()
		}
	}
	return nil
}

// moveDeadlines has the effects follow the machine's deadline.
func (c *core) moveDeadlines() {
	c.effects.deadlines.move(c.machine.State().Deadline, c.env.clock.counted)
}

// finished reports whether nothing is left to do here: the run ended, or it parked
// and its last effect has settled.
func (c *core) finished() bool {
	s := c.machine.State()
	return s.Phase == machine.Ended || s.Phase == machine.Parked && len(c.effects.pending) == 0
}

// cancel stops what is under way and tells the machine, which ends the run. A
// second cancel changes nothing.
func (c *core) cancel(request event.CancelRequested) error {
	if c.life.cancelled {
		return nil
	}
	c.life.cancelled = true
	c.effects.cancelPending()
	return c.stage(request)
}
