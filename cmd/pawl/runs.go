package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/launch"
	"github.com/spf13/cobra"
)

func (a *app) runsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "runs",
		Short: "List runs and act on them",
		Example: "  pawl runs\n  pawl runs show k7x2\n" +
			"  pawl runs resume k7x2",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.listRuns(c.Context()) },
	}
	c.AddCommand(a.showCommand(), a.eventsCommand(), a.resumeCommand())
	return c
}

// find returns the run that a unique prefix names.
func (a *app) find(ctx context.Context, store journal.Store, prefix string) (journal.Run, error) {
	r, err := store.Find(ctx, prefix)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return r, usageError(fmt.Errorf("there is no run %q in %s; 'pawl runs' lists them", prefix, a.journalPath))
	case errors.Is(err, journal.ErrAmbiguous):
		return r, usageError(err)
	case err != nil:
		return r, &exitError{code: exitFailed, err: err}
	}
	return r, nil
}

func (a *app) listRuns(ctx context.Context) error {
	_, store, closeAll, err := a.open(ctx, true)
	if err != nil {
		return err
	}
	defer closeAll()
	rows, err := store.Runs(ctx, journal.Filter{})
	if err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	for _, r := range rows {
		fmt.Fprintf(a.out, "%s  %-8s %-20s %3d cycles  %s  %s\n",
			r.ID, r.State, r.Detail, r.Cycles, r.Created.Local().Format(time.DateTime), r.Name)
	}
	return nil
}

func (a *app) showCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show RUN",
		Short: "Show how a run stands",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			_, store, closeAll, err := a.open(c.Context(), true)
			if err != nil {
				return err
			}
			defer closeAll()
			r, err := a.find(c.Context(), store, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(a.out).Encode(r)
			}
			return a.printRun(r)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (a *app) printRun(r journal.Run) error {
	fmt.Fprintf(a.out, "run      %s\nname     %s\nstate    %s %s\ncycles   %d\nevents   %d\ncreated  %s\nupdated  %s\n",
		r.ID, r.Name, r.State, r.Detail, r.Cycles, r.Seq, r.Created.Local().Format(time.DateTime), r.Updated.Local().Format(time.DateTime))
	if r.Outcome == nil {
		return nil
	}
	var o event.Outcome
	if err := json.Unmarshal(r.Outcome, &o); err != nil {
		return &exitError{code: exitFailed, err: fmt.Errorf("read the outcome of %s: %w", r.ID, err)}
	}
	fmt.Fprintf(a.out, "outcome  %s, %s, ok %t\n", o.Status, o.Reason, o.OK)
	if o.NextSafeAction != "" {
		fmt.Fprintf(a.out, "next     %s\n", o.NextSafeAction)
	}
	fmt.Fprintf(a.out, "\n%s\n", o.FinalOutput)
	return nil
}

func (a *app) eventsCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "events RUN",
		Short: "Print a run's events",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			_, store, closeAll, err := a.open(c.Context(), true)
			if err != nil {
				return err
			}
			defer closeAll()
			r, err := a.find(c.Context(), store, args[0])
			if err != nil {
				return err
			}
			records, err := store.Records(c.Context(), r.ID, 0, 0)
			if err != nil {
				return &exitError{code: exitFailed, err: err}
			}
			for _, rec := range records {
				if _, err := a.out.Write(append(event.WithPos(rec.Body, rec.Pos), '\n')); err != nil {
					return &exitError{code: exitFailed, err: err}
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&f.json, "json", false, "print one event a line (the default form)")
	return c
}

func (a *app) resumeCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run that parked or whose process is gone",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			e, store, closeAll, err := a.open(c.Context(), true)
			if err != nil {
				return err
			}
			defer closeAll()
			row, err := a.find(c.Context(), store, args[0])
			if err != nil {
				return err
			}
			if row.State == journal.Ended {
				return usageError(fmt.Errorf("run %s has ended (%s); start a new one from it with --continue", row.ID, row.Detail))
			}
			ctx, stop := interruptible(c.Context())
			defer stop()
			r, err := e.Resume(ctx, row.ID, launch.Environment)
			if err != nil {
				return &exitError{code: exitFailed, err: err}
			}
			return a.follow(r, f)
		},
	}
	a.outputFlags(c, &f)
	return c
}
