package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// end ends a child that nobody drives, as soon as its lease is free.
func (cs *children) end(ctx context.Context, child, reason string) (childEnd, error) {
	ctx = context.WithoutCancel(ctx)
	for {
		end, err := cs.engine.endChild(ctx, child, reason)
		if !isHeld(err) {
			return end, err
		}
		cs.awaitLease(ctx, err)
	}
}

// leaseLook is how often somebody who waits for a lease looks at it.
const leaseLook = 100 * time.Millisecond

// isHeld reports whether somebody else has the lease of a run.
func isHeld(err error) bool { return errors.As(err, new(*journal.HeldError)) }

// awaitLease waits for a moment, until the lease has expired that somebody holds, or
// ctx ends. Whoever holds it is gone, as is whoever drove the child's parent, or about
// to give it back: the parent's lease is ours.
func (cs *children) awaitLease(ctx context.Context, err error) {
	held, ok := errors.AsType[*journal.HeldError](err)
	if !ok {
		return
	}
	t := time.NewTimer(min(max(held.Expiry.Sub(cs.engine.opts.Now()), time.Millisecond), leaseLook))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
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
func (cs *children) endWithChild(ctx context.Context, a machine.CancelChild) error {
	end, err := cs.engine.endChild(ctx, a.Child, errAbove.Error())
	for held := err; isHeld(held); held = err {
		if cs.awaitLease(ctx, held); ctx.Err() != nil {
			break
		}
		if err = cs.log.lease.renew(ctx); err != nil {
			err = cs.log.failed(err)
		} else {
			end, err = cs.engine.endChild(ctx, a.Child, errAbove.Error())
		}
		if err != nil && ctx.Err() != nil {
			return held // whoever waited gave up, in the middle of a look
		}
	}
	if err != nil {
		return err
	}
	if err := cs.budget.reconcile(ctx, a.Child, true); err != nil {
		return err
	}
	for _, data := range cs.env.childFinished(ctx, a.Call, a.Child, end, cs.env.clock.awake()) {
		if err := cs.stage(data); err != nil {
			return err
		}
	}
	return nil
}

// late settles the call of a child when its parent breaks: with what its
// effect brought, or by ending it.
func (cs *children) late(open openChild, late []event.Data) []event.Data {
	var brought []event.Data
	for _, data := range late {
		switch x := data.(type) {
		case event.ChildFinished:
			if x.Child == open.run {
				brought = append(brought, x)
			}
		case event.ToolResult:
			if x.CallID == open.call {
				brought = append(brought, x)
			}
		}
	}
	if len(brought) > 0 {
		return brought
	}
	const broke = "the run that started this one broke"
	end, err := cs.engine.endChild(context.Background(), open.run, broke)
	if err != nil {
		end = childEnd{outcome: &event.Outcome{
			Status: event.StatusFailed, Reason: event.ReasonInternal, Error: &event.Failure{Class: "internal", Message: broke + ": " + err.Error()},
		}}
	}
	return []event.Data{event.ChildFinished{Child: open.run, CallID: open.call, Outcome: *end.outcome}}
}
