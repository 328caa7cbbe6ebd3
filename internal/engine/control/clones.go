package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/host/workplace"
	"github.com/pawlrun/pawl/journal"
)

// Clones has the directories of clones on this machine, by the runs that are to be removed.
type Clones map[string][]string

// ClonesOf returns the clones of runs that are to be removed. Of a run that cannot be read it
// returns only those that were made for it.
func ClonesOf(ctx context.Context, store journal.Store, here workplace.Here, runs ...string) (Clones, error) {
	made, err := here.Cloned()
	if err != nil || len(made) == 0 {
		return nil, err
	}
	clones := Clones{}
	for _, run := range runs {
		started, _, _ := drive.Began(ctx, store, run)
		for _, dir := range made {
			if here.ClonedFor(dir, run) || started.Workspace == dir && started.Place.Repo != "" && started.Place.Host == here.Host {
				clones[run] = append(clones[run], dir)
			}
		}
	}
	return clones, nil
}

// Remove removes the clones of runs that have been removed. It leaves a clone in which
// another run works: one that continues the removed run, or that the removed run continued.
func (c Clones) Remove(ctx context.Context, store journal.Store, gone []string) error {
	var dirs []string
	for _, run := range gone {
		dirs = append(dirs, c[run]...)
	}
	if len(dirs) == 0 {
		return nil
	}
	rows, err := store.Runs(ctx, journal.Filter{Roots: true})
	for _, r := range rows {
		started, _, wrong := drive.Began(ctx, store, r.ID)
		if wrong != nil && !errors.Is(wrong, journal.ErrNotFound) {
			err = errors.Join(err, wrong)
		}
		dirs = slices.DeleteFunc(dirs, func(dir string) bool { return dir == started.Workspace })
	}
	if err != nil {
		return fmt.Errorf("control: the clones of removed runs stay: %w", err)
	}
	for _, dir := range dirs {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}
