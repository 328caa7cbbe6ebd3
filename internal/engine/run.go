package engine

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// Run is a run that this process drives. It is safe for concurrent use.
type Run struct {
	ID     string
	engine *Engine
	driver *driver
	// begun is the number of the last event before those of this driver.
	begun int64
}

var _ drive.Run = (*Run)(nil)

// RunID implements [drive.Run].
func (r *Run) RunID() string { return r.ID }

// Send delivers a command to this run as [Engine.Send] does, also once it has
// parked, without the secrets of its environment and of the agents that this
// offers.
func (r *Run) Send(ctx context.Context, c journal.Command) error {
	c.Run = r.ID
	_, err := r.engine.send(ctx, c, sender{driver: r.driver})
	return err
}

// Wait blocks until the run has ended or parked, or ctx ends; the latter
// leaves the run going. The error is an engine's failure.
func (r *Run) Wait(ctx context.Context) (machine.State, error) {
	select {
	case <-r.driver.result.done:
		return r.driver.result.final, r.driver.result.err
	case <-ctx.Done():
		return machine.State{}, fmt.Errorf("engine: wait for run %s: %w", r.ID, ctx.Err())
	}
}

// Interrupt parks the run: what is under way is stopped and settled first. It
// does not wait for that, and does nothing to a run that is not driven any
// more.
func (r *Run) Interrupt() { r.driver.life.interruptOnce() }

// Machine is the run's machine. It may be read once Wait has returned.
func (r *Run) Machine() machine.Machine { return r.driver.machine }
