package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// end ends a child that is not driven, as soon as its lease is free.
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

// leasePoll is how often a lease is polled that another process holds.
const leasePoll = 100 * time.Millisecond

// isHeld reports whether another process holds the lease of a run.
func isHeld(err error) bool { return errors.As(err, new(*journal.HeldError)) }

// awaitLease waits briefly for a lease that another process holds, or for the
// end of ctx. Its holder also drove the child's parent, whose lease is ours now,
// so it is gone or about to release the child's lease.
func (cs *children) awaitLease(ctx context.Context, err error) {
	held, ok := errors.AsType[*journal.HeldError](err)
	if !ok {
		return
	}
	t := time.NewTimer(min(max(held.Expiry.Sub(cs.engine.opts.Now()), time.Millisecond), leasePoll))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// endChild ends a child that is not driven, and returns how it ended. A child
// without a journal has nothing to end, and one with an unreadable journal stays
// as it is.
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

// endOf returns how a run ended according to its journal, or to its row if the
// journal cannot be folded, for example because its machine panicked.
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

// endWithChild ends a child of a run that is not driven, and settles its call.
// The reason for the parent's end may contain a secret of the child's that is
// unknown here, so it stays out of the child's journal.
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
			return held // ctx ended during the poll
		}
	}
	if err != nil {
		return err
	}
	if err := cs.budget.reconcile(ctx, a.Child, true); err != nil {
		return err
	}
	for _, data := range cs.childFinished(ctx, a.Call, a.Child, end, cs.env.Clock.Awake()) {
		if err := cs.stage(data); err != nil {
			return err
		}
	}
	return nil
}

// late settles the call of a child when the parent breaks: with the effect's
// result, or by ending the child.
func (cs *children) late(open drive.OpenChild, late []event.Data) []event.Data {
	var brought []event.Data
	for _, data := range late {
		switch x := data.(type) {
		case event.ChildFinished:
			if x.Child == open.Run {
				brought = append(brought, x)
			}
		case event.ToolResult:
			if x.CallID == open.Call {
				brought = append(brought, x)
			}
		}
	}
	if len(brought) > 0 {
		return brought
	}
	const broke = "the run that started this one broke"
	end, err := cs.engine.endChild(context.Background(), open.Run, broke)
	if err != nil {
		end = childEnd{outcome: &event.Outcome{
			Status: event.StatusFailed, Reason: event.ReasonInternal, Error: &event.Failure{Class: "internal", Message: broke + ": " + err.Error()},
		}}
	}
	return []event.Data{event.ChildFinished{Child: open.Run, CallID: open.Call, Outcome: *end.outcome}}
}

// parkedChild is a child that parked while its siblings continue. Later commands
// to it are in its own journal, behind the event with the number seq.
type parkedChild struct {
	event.ChildParked
	seq int64
	// raised reports whether a limit of the parent has changed since it last refused
	// the child.
	raised bool
	// news reports whether the child may have received a command since its journal
	// was last read.
	news bool
	// below holds the runs that the child waits for, once they are known.
	below      []parkedChild
	belowKnown bool
}

// receivers records which children have received a command. It is safe for
// concurrent use.
type receivers struct {
	mu sync.Mutex
	of map[string]bool
}

func (t *receivers) note(child string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]bool{}
	}
	t.of[child] = true
}

func (t *receivers) take() map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of
	t.of = nil
	return of
}

// markUnread marks the journals of all parked children as unread, because another
// process may have written them.
func (cs *children) markUnread() {
	for i := range cs.parked {
		cs.parked[i].news = true
	}
}

// wake resumes parked children that have received what they wait for, in their
// own journal or in this run's. Otherwise they would wait until their siblings
// finish and the run is resumed.
func (cs *children) wake(ctx context.Context) error {
	if len(cs.parked) == 0 || cs.life.leaving() || cs.machine.State().Phase != machine.Running {
		return nil
	}
	reached := cs.receivers.take()
	waiting := cs.parked[:0]
	for _, p := range cs.parked {
		answered := p.raised && waitsAbove(p.ChildParked)
		if !answered && (p.news || reached[p.Child]) {
			var err error
			if answered, err = cs.engine.hasAnswer(ctx, &p); err != nil {
				return cs.log.failed(err)
			}
			p.news = false
		}
		if !answered {
			waiting = append(waiting, p)
			continue
		}
		if err := cs.stage(event.ChildWaiting{Child: p.Child, CallID: p.CallID}); err != nil {
			return err
		}
	}
	cs.parked = waiting
	return nil
}

// limitChanged notes that refused children may request again: parked ones, and
// those about to park.
func (cs *children) limitChanged() {
	for i := range cs.parked {
		cs.parked[i].raised = true
	}
	for _, f := range cs.active {
		f.raised = true
		cs.engine.notifyRaised(f.run)
	}
}

// notifyRaised wakes a driver of this engine because a limit of a run above
// changed.
func (e *Engine) notifyRaised(run string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d := e.drivers[run]; d != nil {
		d.inbox.notifyRaised()
	}
}

// waitsAbove reports whether a child parked at a limit of its parent.
func waitsAbove(p event.ChildParked) bool {
	return p.Reason == event.ParkInput && p.Limit == "" || p.Reason == event.ParkInterrupted
}

// hasAnswer reports whether a parked run has received what it waits for, or has
// ended. For a run that waits for runs below, it checks those, and remembers
// which they are.
func (e *Engine) hasAnswer(ctx context.Context, p *parkedChild) (bool, error) {
	row, err := e.store.Run(ctx, p.Child)
	switch {
	case err != nil:
		return false, err
	case row.State == journal.Ended:
		return true, nil
	case row.State != journal.Parked, p.Reason != event.ParkApproval && p.Reason != event.ParkInput:
		return false, nil
	case row.Seq != p.seq:
		answered, err := e.answeredSince(ctx, p)
		if answered || err != nil {
			return answered, err
		}
	}
	if err := e.findBelow(ctx, p); err != nil {
		return false, err
	}
	for i := range p.below {
		if answered, err := e.hasAnswer(ctx, &p.below[i]); answered || err != nil {
			return answered, err
		}
	}
	return false, nil
}

func (e *Engine) answeredSince(ctx context.Context, p *parkedChild) (bool, error) {
	for ev, err := range drive.Since(ctx, e.store, p.Child, p.seq, func(t event.Type) bool {
		return t.Resolves() || p.Reason == event.ParkInput && (t == event.TypeInputReceived || t == event.TypeBudgetRaised)
	}) {
		return ev != nil, err
	}
	return false, nil
}

// findBelow finds the runs that a parked run waits for. It does so once, because
// they do not change while the run is parked.
func (e *Engine) findBelow(ctx context.Context, p *parkedChild) error {
	if p.belowKnown {
		return nil
	}
	open := map[string]event.ChildParked{}
	for ev, err := range drive.AsStored(ctx, e.store, p.Child, event.TypeChildParked, event.TypeChildFinished) {
		if err != nil {
			return err
		}
		if ev.Seq > p.seq {
			break
		}
		switch x := ev.Data.(type) {
		case event.ChildParked:
			open[x.Child] = x
		case event.ChildFinished:
			delete(open, x.Child)
		}
	}
	p.belowKnown = true
	for _, parked := range open {
		seq, err := e.lastParked(ctx, parked.Child)
		if err != nil {
			return err
		}
		p.below = append(p.below, parkedChild{ChildParked: parked, seq: seq})
	}
	return nil
}

// lastParked returns the number of the event by which a run last parked, 0 for none.
func (e *Engine) lastParked(ctx context.Context, run string) (int64, error) {
	row, err := e.store.Run(ctx, run)
	if err != nil {
		return 0, err
	}
	for ev, err := range drive.Backwards(ctx, e.store, row, drive.OneOf(event.TypeRunParked)) {
		if err != nil {
			return 0, err
		}
		return ev.Seq, nil
	}
	return 0, nil
}
