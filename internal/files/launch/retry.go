package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
)

// ErrNoRetry is returned for a run that cannot be retried.
var ErrNoRetry = errors.New("it cannot be retried")

// Retry finds the point of an ended workflow behind which a fork does again what failed
// or was cancelled. The fork takes over what completed. steps are those that are done
// again.
func Retry(ctx context.Context, e *engine.Engine, store journal.Store, row journal.Run) (b *engine.Branch, steps []string, err error) {
	fail := func(format string, args ...any) (*engine.Branch, []string, error) {
		return nil, nil, fmt.Errorf("run "+row.ID+": %w: "+format, append([]any{ErrNoRetry}, args...)...)
	}
	switch {
	case row.State != journal.Ended:
		return fail("it has not ended; resume it")
	case row.Parent != "":
		return fail("it is a step of run %s; retry that", row.Root)
	}
	if b, err = e.Branch(ctx, row.ID, 1); err != nil {
		return nil, nil, err
	}
	var cfg flow.Config
	if b.Started.Machine != flow.Version || json.Unmarshal(b.Started.Config, &cfg) != nil {
		return fail("it is no workflow; a new run takes it up with --continue")
	}
	if slices.ContainsFunc(cfg.Plan.Steps, func(s plan.Step) bool { return s.Loop != nil && s.Loop.Goal != nil }) {
		return fail("it is a goal; fork it at one of its events")
	}
	retry := flow.NewRetry()
	for read, err := range drive.Events(ctx, store, row.ID, 0) {
		if err != nil {
			return nil, nil, err
		}
		retry.Add(read.Event)
	}
	seq, steps, err := retry.Begin()
	if err != nil {
		return fail("none of its steps failed or was cancelled; it ended as %s", row.Detail)
	}
	if b, err = e.Branch(ctx, row.ID, seq); err != nil {
		return nil, nil, err
	}
	b.Keep = retry.Kept
	return b, steps, nil
}
