package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// PruneOptions say what [Prune] may delete.
type PruneOptions struct {
	// Before is the time that a run must not have been written to since.
	Before time.Time
	// DryRun only finds what would be deleted.
	DryRun bool
}

// Prune deletes old runs that have ended, in whole trees: a run goes together
// with its descendants, and only when all of them are old and ended, so that
// neither a child nor a fork ever loses what it stands on (FIELD F26). Children
// are deleted before their parents. It returns what was deleted, or would be.
func Prune(ctx context.Context, s Store, o PruneOptions) ([]Run, error) {
	rows, err := s.Runs(ctx, Filter{})
	if err != nil {
		return nil, fmt.Errorf("journal: prune: %w", err)
	}
	doomed := doomedTrees(rows, o.Before)
	if o.DryRun {
		return doomed, nil
	}
	for i, r := range doomed {
		switch err := s.Delete(ctx, r.ID); {
		case errors.Is(err, ErrNotFound): // somebody else prunes too
		case err != nil:
			return doomed[:i], fmt.Errorf("journal: prune: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return doomed[:i+1], fmt.Errorf("journal: prune: %w", err)
		}
	}
	return doomed, nil
}

// doomedTrees returns the runs of those trees whose every run is old and ended.
// rows are newest first, and so is the result: children before their parents.
func doomedTrees(rows []Run, before time.Time) []Run {
	// A run's parent is older than itself, so its root is known by then.
	root, kept := make(map[string]string, len(rows)), map[string]bool{}
	for _, r := range slices.Backward(rows) {
		root[r.ID] = r.ID
		if of, ok := root[r.Parent]; ok && r.Parent != "" {
			root[r.ID] = of
		}
		if r.State != Ended || !r.Updated.Before(before) {
			kept[root[r.ID]] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r Run) bool { return kept[root[r.ID]] })
}
