package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/machine"
)

// endChild ends a child that nobody drives, as soon as its lease is free.
func (d *driver) endChild(ctx context.Context, child, reason string) (childEnd, error) {
	ctx = context.WithoutCancel(ctx)
	for {
		end, err := d.engine.endChild(ctx, child, reason)
		if !d.heldUp(ctx, err) {
			return end, err
		}
	}
}

// leaseLook is how often somebody who waits for a lease looks at it.
const leaseLook = 100 * time.Millisecond

// heldUp reports whether a child's lease is held, and waits for a moment, until
// it has expired, or ctx ends. Whoever holds it is gone, as is whoever drove the
// child's parent, or about to give it back: the parent's lease is ours.
func (d *driver) heldUp(ctx context.Context, err error) bool {
	held, ok := errors.AsType[*journal.HeldError](err)
	if !ok {
		return false
	}
	t := time.NewTimer(min(max(held.Expiry.Sub(d.engine.opts.Now()), time.Millisecond), leaseLook))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return true
}

// endChild ends a child that nobody drives, and says how it ended. One that was
// never made has nothing to end, and one that cannot be read stays as it is.
func (e *Engine) endChild(ctx context.Context, child, reason string) (childEnd, error) {
	row, err := e.store.Run(ctx, child)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return childEnd{outcome: &event.Outcome{Status: event.StatusCancelled, Reason: event.ReasonCancelled}}, nil
	case err != nil:
		return childEnd{}, fmt.Errorf("engine: end run %s: %w", child, err)
	case row.State == journal.Ended:
		return e.endOf(ctx, row)
	}
	d, _, err := e.take(ctx, child, false)
	if errors.Is(err, journal.ErrEnded) {
		return e.endChild(ctx, child, reason)
	}
	if isUnreadable(err) {
		return childEnd{outcome: &event.Outcome{
			Status: event.StatusFailed, Reason: event.ReasonInternal, Error: &event.Failure{Class: "internal", Message: err.Error()},
		}}, nil
	}
	if err != nil {
		return childEnd{}, err
	}
	defer e.unclaim(child)
	defer d.log.lease.release(ctx)
	recovered := d.machine.State().Phase != machine.Parked
	if err := d.endCancelled(ctx, journal.Command{By: e.opts.Owner, Text: reason}, recovered); err != nil {
		return childEnd{}, err
	}
	state := d.machine.State()
	return leftAs(&state, nil)
}

// endOf is how a run ended, by its journal. Of one that cannot be folded, as
// when its machine broke, the row knows.
func (e *Engine) endOf(ctx context.Context, row journal.Run) (childEnd, error) {
	if d, _, err := e.load(ctx, row.ID, false); err == nil {
		if state := d.machine.State(); state.Outcome != nil {
			return leftAs(&state, nil)
		}
	}
	var o event.Outcome
	if err := json.Unmarshal(row.Outcome, &o); err != nil {
		return childEnd{}, fmt.Errorf("engine: outcome of run %s: %w", row.ID, err)
	}
	unknown := &event.TaintSource{Run: row.ID}
	return childEnd{outcome: &o, taint: event.Taint{Untrusted: unknown, Private: unknown}}, nil
}

// endWithChild ends a child of a run that nobody drives, and settles its call. The
// reason of the run itself may hold what is a secret of the child's, which nobody
// here knows, so it stays out of the child's journal.
func (d *driver) endWithChild(ctx context.Context, a machine.CancelChild) error {
	end, err := d.engine.endChild(ctx, a.Child, errAbove.Error())
	for held := err; d.heldUp(ctx, held) && ctx.Err() == nil; held = err {
		if err = d.log.lease.renew(ctx); err != nil {
			err = d.log.failed(err)
		} else {
			end, err = d.engine.endChild(ctx, a.Child, errAbove.Error())
		}
		if err != nil && ctx.Err() != nil {
			return held // whoever waited gave up, in the middle of a look
		}
	}
	if err != nil {
		return err
	}
	if err := d.reconcile(ctx, a.Child, true); err != nil {
		return err
	}
	for _, data := range d.env.childFinished(ctx, a.Call, a.Child, end, d.env.clock.awake()) {
		if err := d.stage(data); err != nil {
			return err
		}
	}
	return nil
}

// lateChild settles the call of a child when its parent breaks: with what its
// flight brought, or by ending it.
func (d *driver) lateChild(c openChild, late []event.Data) []event.Data {
	var brought []event.Data
	for _, data := range late {
		switch x := data.(type) {
		case event.ChildFinished:
			if x.Child == c.run {
				brought = append(brought, x)
			}
		case event.ToolResult:
			if x.CallID == c.call {
				brought = append(brought, x)
			}
		}
	}
	if len(brought) > 0 {
		return brought
	}
	const broke = "the run that started this one broke"
	end, err := d.engine.endChild(context.Background(), c.run, broke)
	if err != nil {
		end = childEnd{outcome: &event.Outcome{
			Status: event.StatusFailed, Reason: event.ReasonInternal, Error: &event.Failure{Class: "internal", Message: broke + ": " + err.Error()},
		}}
	}
	return []event.Data{event.ChildFinished{Child: c.run, CallID: c.call, Outcome: *end.outcome}}
}
