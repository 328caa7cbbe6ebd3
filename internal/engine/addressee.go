package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/journal"
)

// AmbiguousError is returned for a decision on a question that several of the runs
// below the named one ask under the same id. It is an [ErrNotPending].
type AmbiguousError struct {
	Run, ID string
	// Asked are the runs that ask.
	Asked []string
}

// Error says which runs a decision can name.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s is asked by several runs below run %s: name one of %s", e.ID, e.Run, strings.Join(e.Asked, ", "))
}

// Is reports whether it is not known what the decision is about.
func (e *AmbiguousError) Is(target error) bool { return target == ErrNotPending }

// Addressee is the run that a command is for: a decision goes to the run that asks,
// where that is the named run or one below it.
func (e *Engine) Addressee(ctx context.Context, c journal.Command) (string, error) {
	if !isDecision(c) || strings.HasPrefix(c.CallID, c.Run+"-") {
		return c.Run, nil
	}
	if parts := strings.Split(c.CallID, "-"); len(parts) > 2 { // an id of a call begins with that of its run
		if made := strings.Join(parts[:len(parts)-2], "-"); e.isBelow(ctx, made, c.Run) {
			return made, nil
		}
	}
	top, err := e.store.Run(ctx, c.Run)
	if err != nil {
		return c.Run, nil // whoever sends it says what is wrong
	}
	rows, err := e.store.Runs(ctx, journal.Filter{Root: top.Placed().Root})
	if err != nil {
		return "", fmt.Errorf("engine: runs below run %s: %w", c.Run, err)
	}
	return e.asker(ctx, fromOn(rows, c.Run), c)
}

// isBelow reports whether a run is below another one.
func (e *Engine) isBelow(ctx context.Context, run, above string) bool {
	for run != "" {
		row, err := e.store.Run(ctx, run)
		if err != nil {
			return false
		}
		if run = row.Parent; run == above {
			return true
		}
	}
	return false
}

// fromOn are the rows of a tree that are a run's or of runs below it.
func fromOn(rows []journal.Run, run string) []journal.Run {
	parent := make(map[string]string, len(rows))
	for _, r := range rows {
		parent[r.ID] = r.Parent
	}
	return slices.DeleteFunc(rows, func(r journal.Run) bool {
		at := r.ID
		for at != run && at != "" {
			at = parent[at]
		}
		return at == ""
	})
}

// asker is the run that asks what a decision is about, or that has asked it: the
// named one before those below it. Where none has, it is the named one.
func (e *Engine) asker(ctx context.Context, rows []journal.Run, c journal.Command) (string, error) {
	var asks []string
	for _, r := range rows {
		if r.State == journal.Ended {
			continue
		}
		m, err := e.Inspect(ctx, r.ID)
		switch {
		case err != nil || pending(m.State(), c.CallID) == nil: // where it cannot be read, others may ask
		case r.ID == c.Run:
			return c.Run, nil
		default:
			asks = append(asks, r.ID)
		}
	}
	switch len(asks) {
	case 0:
		return e.asked(ctx, rows, c), nil
	case 1:
		return asks[0], nil
	}
	return "", &AmbiguousError{Run: c.Run, ID: c.CallID, Asked: asks}
}

// asked is the run that took a decision.
func (e *Engine) asked(ctx context.Context, rows []journal.Run, c journal.Command) string {
	for _, r := range rows {
		if made, err := e.Decisions(ctx, r.ID, c.CallID); err == nil && len(made) > 0 {
			return r.ID
		}
	}
	return c.Run
}
