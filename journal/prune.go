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
	// Before is the time that a run must not have been written to since, nor
	// its lease have been alive.
	Before time.Time
	// States are those that a run may be in; none means [Ended].
	States []State
	// DryRun only finds what would be deleted.
	DryRun bool
}

// Prune deletes old runs that have ended, in whole trees: a run goes together
// with its descendants, and only when all of them may go. A fork is the root of
// a tree of its own, and what it stands on stays as long as it does; so neither
// a child nor a fork ever loses what it stands on (FIELD F26). Children are
// deleted before their parents. It returns what was deleted, or would be.
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
		return doomed, nil
	}
	var gone []Run
	stays := map[string]bool{}
	for _, r := range doomed {
		if !stays[r.ID] {
			err := s.Delete(ctx, r.ID)
			if stays[r.ID] = taken(err); err != nil && !taken(err) && !errors.Is(err, ErrNotFound) {
				return gone, fmt.Errorf("journal: prune: %w", err)
			}
		}
		if stays[r.ID] {
			stays[r.Parent] = true
			continue
		}
		gone = append(gone, r)
		if err := ctx.Err(); err != nil {
			return gone, fmt.Errorf("journal: prune: %w", err)
		}
	}
	return gone, nil
}

// taken says that since the runs were listed somebody has forked this one or
// goes on with it. That they have deleted it is what was wanted.
func taken(err error) bool {
	_, forked := errors.AsType[*ForkedError](err)
	_, held := errors.AsType[*HeldError](err)
	return forked || held
}

// mayGo judges a run by itself.
func (o PruneOptions) mayGo(r Run) bool {
	held := r.Owner != "" && r.Expiry.After(o.Before)
	return slices.Contains(o.States, r.State) && r.Updated.Before(o.Before) && !held
}

// doomed returns the runs of those trees whose every run may go, and on which no
// fork stands that stays. rows are newest first, and so is the result: children
// before their parents.
func (o PruneOptions) doomed(rows []Run) []Run {
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
	// A fork is younger than what it stands on, so whether it stays is known
	// before that is looked at.
	for _, r := range rows {
		if base, ok := root[r.ForkOf]; ok && r.ForkOf != "" && kept[root[r.ID]] {
			kept[base] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r Run) bool { return kept[root[r.ID]] })
}
