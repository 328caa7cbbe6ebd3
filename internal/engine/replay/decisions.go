package replay

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
)

// Decisions returns an [Env.Ask] that answers questions with the recorded decisions of
// a run: the n-th question about the same call gets the n-th decision. It approves a
// call without a recorded decision, because a replay has no effects. It requires
// [Env.AskInTurn].
func Decisions(ctx context.Context, past drive.Past, run string) (func(context.Context, event.Question) (event.Resolution, error), error) {
	var asked []*event.Resolution // in the order of the questions
	err := past.Refold(ctx, run, func(_ machine.Machine, ev *event.Event) error {
		switch d := ev.Data.(type) {
		case event.Asking:
			q := d.Question()
			asked = append(asked, &event.Resolution{ID: q.ID, Digest: q.Digest})
		case event.Resolving:
			// If a question was repeated, the decision belongs to the last one.
			r := d.Resolution()
			for _, q := range slices.Backward(asked) {
				if q.ID == r.ID {
					*q = r
					break
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("replay: recorded decisions of run %s: %w", run, err)
	}
	said := &recordedDecisions{run: run, byDigest: map[string][]event.Resolution{}}
	for _, d := range asked {
		if d.Kind != "" {
			said.byDigest[d.Digest] = append(said.byDigest[d.Digest], *d)
		}
	}
	return said.answer, nil
}

// recordedDecisions is safe for concurrent use.
type recordedDecisions struct {
	run      string
	mu       sync.Mutex
	byDigest map[string][]event.Resolution
}

func (r *recordedDecisions) answer(_ context.Context, q event.Question) (event.Resolution, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.byDigest[q.Digest]
	if len(left) == 0 {
		by, kind := "replay of "+r.run, event.ApprovalApproved
		if !slices.Contains(q.Takes, kind) {
			kind = event.ApprovalRejected
		}
		return event.Resolution{Kind: kind, Approver: by, Reason: "decided by the " + by}, nil
	}
	r.byDigest[q.Digest] = left[1:]
	return left[0], nil
}
