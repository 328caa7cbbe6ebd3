package control

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// Pending is a call that waits for a decision, with the run that made it.
type Pending struct {
	Run string `json:"run"`
	event.ToolPendingApproval
}

// Pending are the calls that wait for a decision, those of a run before those
// of the runs that it started: a decision about any of them may be sent to it
// (DESIGN, "The tree of runs"). A run that it started and that cannot be read,
// or not any more, is left out: the others can be decided about all the same.
func (d *Desk) Pending(ctx context.Context, run string) ([]Pending, error) {
	all, err := d.PendingIn(ctx, run)
	if err != nil {
		return nil, err
	}
	children, err := d.children(ctx, run)
	if err != nil {
		return nil, err
	}
	for i := len(children) - 1; i >= 0; i-- { // they come newest first
		more, err := d.PendingIn(ctx, children[i].ID)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// children are the runs that a run started and that have not ended.
func (d *Desk) children(ctx context.Context, run string) ([]journal.Run, error) {
	children, err := d.store.Runs(ctx, journal.Filter{
		Parent: run, States: []journal.State{journal.Running, journal.Waiting, journal.Parked},
	})
	if err != nil {
		return nil, fmt.Errorf("control: runs that run %s started: %w", run, err)
	}
	return children, nil
}

// PendingIn are the calls of a run itself that wait for a decision. A run that
// asked nobody in its last cycle is not read further, so that no error does not
// mean that it can be.
func (d *Desk) PendingIn(ctx context.Context, run string) ([]Pending, error) {
	if asked, err := d.asked(ctx, run); err != nil || !asked {
		return nil, err
	}
	m, err := d.engine.Inspect(ctx, run)
	if err != nil {
		return nil, err
	}
	var calls []Pending
	for _, p := range m.State().Pending {
		calls = append(calls, Pending{Run: run, ToolPendingApproval: *p})
	}
	return calls, nil
}

// asked says that a call of a run's last cycle was put to somebody. Calls belong to
// their cycle, so that none waits where none was.
func (d *Desk) asked(ctx context.Context, run string) (bool, error) {
	r, err := d.store.Run(ctx, run)
	if err != nil {
		return false, fmt.Errorf("control: run %s: %w", run, err)
	}
	for rec, err := range d.backwards(ctx, r, 8) {
		switch {
		case err != nil:
			return false, err
		case rec.Type == string(event.TypeToolPendingApproval):
			return true, nil
		case rec.Type == string(event.TypeCycleStart):
			return false, nil
		}
	}
	return false, nil
}
