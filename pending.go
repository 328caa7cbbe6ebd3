package pawl

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/journal"
)

// addBelow adds the calls that wait for a decision in the runs below.
func (s *State) addBelow(ctx context.Context, store journal.Store) error {
	below, err := pendingBelow(ctx, store, s.Run)
	s.Pending = append(s.Pending, below...)
	return err
}

// pendingBelow are the calls that wait in the runs below one. A run that cannot be
// read is left out, so that the others can be decided.
func pendingBelow(ctx context.Context, store journal.Store, run string) ([]Approval, error) {
	rows, err := store.Runs(ctx, journal.Filter{
		Parent: run, States: []journal.State{journal.Running, journal.Waiting, journal.Parked},
	})
	if err != nil {
		return nil, fmt.Errorf("pawl: runs below run %s: %w", run, err)
	}
	var pending []Approval
	for _, r := range slices.Backward(rows) {
		m, err := newEngine(store, nil).Inspect(ctx, r.ID)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err == nil {
			pending = append(pending, stateOf(r.ID, nil, m.State()).Pending...)
		}
		deeper, err := pendingBelow(ctx, store, r.ID)
		if err != nil {
			return nil, err
		}
		pending = append(pending, deeper...)
	}
	return pending, nil
}
