package main

import (
	"context"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/journal"
)

type listFlags struct {
	json   bool
	states []string
	limit  int
}

func (f *listFlags) flags(c *cobra.Command) {
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	c.Flags().StringSliceVar(&f.states, "state", nil, "only runs in this state: queued, running, waiting, parked, paused, ended")
	c.Flags().IntVar(&f.limit, "limit", 50, "at most this many, 0 for all")
}

func (a *app) listCommand() *cobra.Command {
	var f listFlags
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the runs of the journal, newest first, as without a verb",
		Example: "  pawl runs list --state parked",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.listRuns(c.Context(), f) },
	}
	f.flags(c)
	return c
}

// list is what --json prints: the same envelope as every other list.
type list struct {
	Items []control.Standing `json:"items"`
	// Next is the id to go on after, when there is more.
	Next string `json:"next,omitempty"`
}

func (a *app) listRuns(ctx context.Context, f listFlags) error {
	filter := journal.Filter{}
	var err error
	if filter.States, err = parseStates(f.states); err != nil {
		return err
	}
	if f.limit < 0 {
		return usagef("--limit is %d; it must be 0 or more", f.limit)
	}
	s, err := a.open(ctx, toRead)
	if err != nil {
		return err
	}
	defer s.close()
	if f.limit > 0 {
		filter.Limit = f.limit + 1
	}
	rows, err := s.store.Runs(ctx, filter)
	if err != nil {
		return err
	}
	var page list
	if f.limit > 0 && len(rows) > f.limit {
		rows = rows[:f.limit]
		page.Next = rows[f.limit-1].ID
	}
	if page.Items, err = s.desk.Standings(ctx, rows); err != nil {
		return err
	}
	if f.json {
		return a.printJSON(page)
	}
	return a.printList(page)
}

func (a *app) printList(page list) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	now := time.Now()
	for _, r := range page.Items {
		row := r.ID + "\t" + standingNow(r, now) + "\t" + plural(r.Cycles, "cycle") + "\t" + clock(r.Created) + "\t" + firstLine(r.Name, 60) + startedBy(r.Run) + "\n"
		if _, err := w.Write([]byte(row)); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if page.Next != "" {
		return a.printf("… and more; --limit 0 lists all, this list had --limit %s\n", strconv.Itoa(len(page.Items)))
	}
	return nil
}
