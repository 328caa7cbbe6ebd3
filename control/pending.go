package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

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

// PendingIn are the calls of a run itself that wait for a decision. Calls belong to
// their cycle, so no more of a run is read than its last one: no error does not mean
// that the rest can be.
func (d *Desk) PendingIn(ctx context.Context, run string) ([]Pending, error) {
	r, err := d.store.Run(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("control: run %s: %w", run, err)
	}
	q := questions{closed: map[string]bool{}, answers: map[string][]event.ToolApprovalResolved{}}
	for rec, err := range d.backwards(ctx, r, 8) {
		if err != nil {
			return nil, err
		}
		whole, err := q.before(rec)
		if err != nil {
			return nil, fmt.Errorf("control: run %s, event %d: %w", run, rec.Seq, err)
		}
		if whole {
			break
		}
	}
	calls := make([]Pending, len(q.open))
	for i, p := range q.open {
		calls[i] = Pending{Run: run, ToolPendingApproval: p}
	}
	return calls, nil
}

// questions are the calls of a cycle about which somebody was asked and nobody has
// decided. Its events are read backwards, and the machine decides by the same, so
// the simulator holds the two to each other.
type questions struct {
	open []event.ToolPendingApproval
	// closed are the calls of which what was asked before is void, or answered.
	closed  map[string]bool
	answers map[string][]event.ToolApprovalResolved
	// readings are those of the policy under which the run was gone on with: what
	// was asked under another one is judged again.
	readings []string
}

// before takes in what happened before, and says whether that is all.
func (q *questions) before(r journal.Record) (whole bool, err error) {
	switch event.Type(r.Type) {
	case event.TypeCycleStart, event.TypeRunForked, event.TypeRunTerminatedBy:
		return true, nil
	case event.TypeModelResponse, event.TypeRunResumed, event.TypePolicyDecision, event.TypeToolPendingApproval,
		event.TypeToolApprovalResolved, event.TypeToolStarted, event.TypeToolResult:
	default:
		return false, nil
	}
	e, err := event.Decode(r.Body)
	if err != nil {
		return false, err
	}
	switch d := e.Data.(type) {
	case event.ModelResponse:
		q.inOrderOf(d.ToolCalls)
		return true, nil
	case event.RunResumed:
		q.readings = append(q.readings, d.Policy)
	case event.PolicyDecision:
		q.closed[d.CallID] = true
	case event.ToolStarted:
		q.closed[d.CallID] = true
	case event.ToolResult:
		q.closed[d.CallID] = true
	case event.ToolApprovalResolved:
		q.answers[d.CallID] = append(q.answers[d.CallID], d)
	case event.ToolPendingApproval:
		if !q.closed[d.CallID] && !q.answered(d) && !q.voids(d) {
			q.open = append(q.open, d)
		}
		q.closed[d.CallID] = true
	}
	return false, nil
}

// answered says that a decision counts: one about other arguments, under another
// policy or after the time for it does not.
func (q *questions) answered(p event.ToolPendingApproval) bool {
	return slices.ContainsFunc(q.answers[p.CallID], func(d event.ToolApprovalResolved) bool {
		late := d.Kind != event.ApprovalExpired && p.ExpiresAt != nil && !d.At.Before(*p.ExpiresAt)
		return d.Digest == p.Digest && d.Policy == p.Policy && !late
	})
}

// voids says that the run was gone on with under another reading of the policy
// since it asked.
func (q *questions) voids(p event.ToolPendingApproval) bool {
	asked, _, _ := strings.Cut(p.Policy, "/")
	return slices.ContainsFunc(q.readings, func(reading string) bool { return reading != "" && reading != asked })
}

func (q *questions) inOrderOf(calls []event.CallRef) {
	if len(q.open) < 2 {
		return
	}
	place := make(map[string]int, len(calls))
	for i, c := range calls {
		place[c.CallID] = i
	}
	slices.SortFunc(q.open, func(a, b event.ToolPendingApproval) int { return place[a.CallID] - place[b.CallID] })
}
