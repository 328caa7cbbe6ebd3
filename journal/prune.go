package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// PruneOptions select what [Prune] may delete.
type PruneOptions struct {
	// Before excludes runs that were written to, or whose lease was held, since that
	// time.
	Before time.Time
	// States are the states of runs to delete; none means [Ended].
	States []State
	// DryRun only finds what would be deleted.
	DryRun bool
}

// Prune deletes old runs that have ended, in whole trees: a run together with
// its descendants, and only if all of them may be deleted. A fork is the root
// of a tree of its own, and the run that it shares events with stays as long as
// the fork. Children are deleted before their parents. Prune returns what was
// deleted, or would be.
//
// Each tree is checked again before its first run is deleted, and stays whole
// if one of its runs has been resumed or forked by then. If that happens while
// the tree is being deleted, the remaining runs stay.
func Prune(ctx context.Context, s Store, o PruneOptions) ([]Run, error) {
	if len(o.States) == 0 {
		o.States = []State{Ended}
	}
	rows, err := s.Runs(ctx, Filter{})
	if err != nil {
		return nil, fmt.Errorf("journal: prune: %w", err)
	}
	doomed := o.doomed(rows)
	if o.DryRun {
		return slices.Concat(doomed...), nil
	}
	var gone []Run
	for _, tree := range doomed {
		may, err := o.mayStillGo(ctx, s, tree)
		if may {
			var deleted []Run
			deleted, err = deleteTree(ctx, s, tree)
			gone = append(gone, deleted...)
		}
		if err != nil {
			return gone, fmt.Errorf("journal: prune: %w", err)
		}
	}
	return gone, nil
}

// deleteTree deletes the runs of a tree up to the first that was taken, and returns the
// deleted ones.
func deleteTree(ctx context.Context, s Store, tree []Run) ([]Run, error) {
	for i, r := range tree {
		err := s.Delete(ctx, r.ID)
		if taken(err) {
			return tree[:i], nil
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return tree[:i], err
		}
		if err := ctx.Err(); err != nil {
			return tree[:i+1], err
		}
	}
	return tree, nil
}

// mayStillGo checks a tree again. Forks to be deleted are already gone, so a remaining
// fork keeps the tree.
func (o PruneOptions) mayStillGo(ctx context.Context, s Store, tree []Run) (bool, error) {
	for _, listed := range tree {
		r, err := s.Run(ctx, listed.ID)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil || !o.mayGo(r) {
			return false, err
		}
		forks, err := s.Runs(ctx, Filter{ForkOf: r.ID, Limit: 1})
		if err != nil || len(forks) > 0 {
			return false, err
		}
	}
	return true, nil
}

// taken reports whether the run was forked or resumed since the runs were listed. A
// run that another process deleted needs no work.
func taken(err error) bool {
	_, forked := errors.AsType[*ForkedError](err)
	_, held := errors.AsType[*HeldError](err)
	return forked || held
}

// mayGo checks a run by itself.
func (o PruneOptions) mayGo(r Run) bool {
	held := r.Owner != "" && r.Expiry.After(o.Before)
	return slices.Contains(o.States, r.State) && r.Updated.Before(o.Before) && !held
}

// doomed returns the trees whose runs may all be deleted, and that no remaining fork is
// based on. rows are newest first, and so are the trees by their roots, forks before
// the runs that they are based on, and the runs of each, children before their parents.
func (o PruneOptions) doomed(rows []Run) [][]Run {
	// A parent is older than its children, so its root is known by then.
	root, kept := make(map[string]string, len(rows)), map[string]bool{}
	for _, r := range slices.Backward(rows) {
		root[r.ID] = r.ID
		if of, ok := root[r.Parent]; ok && r.Parent != "" {
			root[r.ID] = of
		}
		if !o.mayGo(r) {
			kept[root[r.ID]] = true
		}
	}
	// A fork is newer than the run that it is based on, so it is decided first.
	for _, r := range rows {
		if base, ok := root[r.ForkOf]; ok && r.ForkOf != "" && kept[root[r.ID]] {
			kept[base] = true
		}
	}
	var doomed [][]Run
	trees := map[string][]Run{}
	for _, r := range rows {
		of := root[r.ID]
		if kept[of] {
			continue
		}
		trees[of] = append(trees[of], r)
		if of == r.ID {
			doomed = append(doomed, trees[of])
		}
	}
	return doomed
}
