package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/journal"
)

// removed is what rm and prune print as JSON.
type removed struct {
	Removed []string `json:"removed"`
}

// spared is what a dry run prints as JSON: what it would remove.
type spared struct {
	removed
	WouldRemove []string `json:"wouldRemove"`
}

func (a *app) removeCommand() *cobra.Command {
	var asJSON, force bool
	c := &cobra.Command{
		Use:        "rm RUN",
		SuggestFor: []string{"delete", "remove"},
		Short:      "Remove an ended run and its children",
		Long: `Removes an ended run, the runs that it started, their logs, and the clone that the run worked in, if that is on this
machine and no other run works in it. What the run did not push from its clone is lost.`,
		Example: "  pawl runs rm k7x2",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := interruptible(c.Context())
			defer stop()
			return a.withRun(ctx, toWrite, args[0], func(s *session, r journal.Run) error {
				if r.State != journal.Ended && !force {
					return usagef("run %s has not ended (%s); cancel it first%s", r.ID, stateText(r), orForce(r))
				}
				gone, err := s.remove(ctx, r)
				if err != nil {
					return a.cutShort(ctx, err, gone, asJSON)
				}
				return a.printRemoved(gone, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "also a run that is parked")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// orForce returns the other way to remove a run that has not ended.
func orForce(r journal.Run) string {
	if control.Alive(r, time.Now()) {
		return ""
	}
	return ", or remove it all the same with --force"
}

// remove deletes a run and its descendants, with their logs and clones.
func (s *session) remove(ctx context.Context, r journal.Run) ([]string, error) {
	clones, err := control.ClonesOf(ctx, s.store, s.app.here(), r.ID)
	if err != nil {
		return nil, err
	}
	gone, err := journal.Remove(ctx, s.store, r.ID)
	if shared, is := errors.AsType[*journal.ForkedError](err); is {
		return gone, usageError(shared)
	}
	for _, id := range gone {
		err = errors.Join(err, s.app.removeLog(id))
	}
	return gone, errors.Join(err, clones.Remove(context.WithoutCancel(ctx), s.store, gone))
}

// removeLog removes the logs of a run: that of its process if it was detached, and that
// of its MCP servers. It also removes the trees of a loop.
func (a *app) removeLog(run string) error {
	for _, log := range []string{a.logOf(run), a.serverLogOf(run)} {
		if err := os.Remove(log); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the log of run %s: %w", run, err)
		}
	}
	return launch.RemoveTrees(run)
}

func (a *app) printRemoved(ids []string, asJSON bool) error {
	if asJSON {
		return a.printJSON(removed{Removed: append([]string{}, ids...)})
	}
	return a.printLines("removed", ids)
}

// printLines prints a line for each run.
func (a *app) printLines(what string, ids []string) error {
	for _, id := range ids {
		if err := a.printf("%s %s\n", what, id); err != nil {
			return err
		}
	}
	return nil
}

// cutShort returns the error of a removal with what it removed before.
func (a *app) cutShort(ctx context.Context, err error, gone []string, asJSON bool) error {
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), engine.ErrInterrupted) {
		err = &exitError{code: exitCancelled, err: errors.New("interrupted; the remaining runs were not removed")}
	}
	if len(gone) > 0 {
		err = errors.Join(err, a.printRemoved(gone, asJSON))
	}
	return err
}

type pruneFlags struct {
	olderThan string
	states    []string
	dryRun    bool
	json      bool
}

func (a *app) pruneCommand() *cobra.Command {
	var f pruneFlags
	c := &cobra.Command{
		Use:   "prune --older-than AGE",
		Short: "Remove old runs",
		Long: `Removes runs that have not changed for the given time, with the runs they started, as 'runs rm' does. Only ended runs are
removed, unless --state says otherwise. A running run is never removed, nor one whose child or fork stays.`,
		Example: "  pawl runs prune --older-than 30d\n  pawl runs prune --older-than 12h --dry-run",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.prune(c.Context(), f) },
	}
	c.Flags().StringVar(&f.olderThan, "older-than", "", "how long ago the run changed last: 30d, 12h, 90m")
	c.Flags().StringSliceVar(&f.states, "state", []string{string(journal.Ended)}, "runs in this state: ended, parked, paused, queued (a fork that never ran)")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "only print the runs that would be removed")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return c
}

func (a *app) prune(ctx context.Context, f pruneFlags) error {
	if f.olderThan == "" {
		return usagef("--older-than is missing; write it like 30d, 12h or 90m")
	}
	age, err := parseAge(f.olderThan)
	if err != nil {
		return err
	}
	selected, err := parseStates(f.states)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	s, err := a.open(ctx, toWrite)
	if err != nil {
		return err
	}
	defer s.close()
	gone, err := s.prune(ctx, journal.PruneOptions{Before: time.Now().Add(-age), States: selected, DryRun: f.dryRun})
	switch {
	case err != nil && f.dryRun:
		return a.cutShort(ctx, err, nil, f.json)
	case err != nil:
		return a.cutShort(ctx, err, gone, f.json)
	case len(gone) == 0:
		fmt.Fprintf(a.err, "nothing to remove: each run that is %s changed within %s, is being driven, or has a child or a fork that stays\n",
			strings.Join(f.states, " or "), f.olderThan)
	}
	switch {
	case f.dryRun && f.json:
		return a.printJSON(spared{removed{[]string{}}, gone})
	case f.dryRun:
		return a.printLines("would remove", gone)
	}
	return a.printRemoved(gone, f.json)
}

// prune removes old runs with their logs and clones, and returns their ids.
func (s *session) prune(ctx context.Context, o journal.PruneOptions) (gone []string, err error) {
	ids := func(rows []journal.Run, err error) ([]string, error) {
		all := make([]string, len(rows))
		for i, r := range rows {
			all[i] = r.ID
		}
		return all, err
	}
	if o.DryRun {
		return ids(journal.Prune(ctx, s.store, o))
	}
	dry := o
	dry.DryRun = true
	old, err := ids(journal.Prune(ctx, s.store, dry))
	if err != nil {
		return nil, err
	}
	clones, err := control.ClonesOf(ctx, s.store, s.app.here(), old...)
	if err != nil {
		return nil, err
	}
	gone, err = ids(journal.Prune(ctx, s.store, o))
	for _, run := range gone {
		err = errors.Join(err, s.app.removeLog(run))
	}
	return gone, errors.Join(err, clones.Remove(context.WithoutCancel(ctx), s.store, gone))
}
