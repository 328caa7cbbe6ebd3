package drive

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/journal"
)

// Step is a run on the path from a run down to one below it.
type Step struct {
	Run  string `json:"run"`
	Name string `json:"name,omitempty"`
}

// Below is a descendant of a run, with the path to it: the last step is the descendant
// itself.
type Below struct {
	journal.Run
	Path []Step
}

// Below returns the descendants of a run in the order of their start; a parent comes
// before its children.
func (p Past) Below(ctx context.Context, run string) ([]Below, error) {
	top, err := p.Store.Run(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	rows, err := p.Store.Runs(ctx, journal.Filter{Root: top.Root})
	if err != nil {
		return nil, fmt.Errorf("runs below run %s: %w", run, err)
	}
	started := map[string][]journal.Run{}
	for _, r := range slices.Backward(rows) { // they come newest first
		started[r.Parent] = append(started[r.Parent], r)
	}
	var all []Below
	var walk func(above string, path []Step)
	walk = func(above string, path []Step) {
		for _, r := range started[above] {
			to := append(slices.Clone(path), Step{Run: r.ID, Name: r.Name})
			all = append(all, Below{Run: r, Path: to})
			walk(r.ID, to)
		}
	}
	walk(top.ID, nil)
	return all, nil
}
