package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
)

// RecordedDecisions answers in the place of people ([Env.Ask]): of a call what
// was decided about the same call in a run, the first time the first decision.
// What nobody decided there is approved, because a replay has no effects. It is
// meant for [Env.AskInTurn].
func (e *Engine) RecordedDecisions(ctx context.Context, run string) (func(context.Context, event.ToolPendingApproval) (event.ToolApprovalResolved, error), error) {
	var asked []*event.ToolApprovalResolved // in the order of the questions
	err := e.refold(ctx, run, func(_ machine.Machine, ev *event.Event) error {
		switch d := ev.Data.(type) {
		case event.ToolPendingApproval:
			asked = append(asked, &event.ToolApprovalResolved{CallID: d.CallID, Digest: d.Digest})
		case event.ToolApprovalResolved:
			// Of a call that was asked about again the last question is meant.
			for _, q := range slices.Backward(asked) {
				if q.CallID == d.CallID {
					*q = d
					break
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("engine: recorded decisions of run %s: %w", run, err)
	}
	said := &recordedDecisions{run: run, byDigest: map[string][]event.ToolApprovalResolved{}}
	for _, d := range asked {
		if d.Kind != "" {
			said.byDigest[d.Digest] = append(said.byDigest[d.Digest], *d)
		}
	}
	return said.answer, nil
}

// recordedDecisions are safe for concurrent use.
type recordedDecisions struct {
	run      string
	mu       sync.Mutex
	byDigest map[string][]event.ToolApprovalResolved
}

func (r *recordedDecisions) answer(_ context.Context, p event.ToolPendingApproval) (event.ToolApprovalResolved, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.byDigest[p.Digest]
	if len(left) == 0 {
		by := "replay of " + r.run
		return event.ToolApprovalResolved{Kind: event.ApprovalApproved, Approver: by, Reason: "decided by the " + by}, nil
	}
	r.byDigest[p.Digest] = left[1:]
	return left[0], nil
}
