package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

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

// list is what --json prints.
type list struct {
	Items []control.Standing `json:"items"`
	// More says that the limit left some out.
	More bool `json:"more,omitempty"`
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
		rows, page.More = rows[:f.limit], true
	}
	if page.Items, err = s.desk.Standings(ctx, rows); err != nil {
		return err
	}
	if f.json {
		return a.printJSON(page)
	}
	switch {
	case len(rows) > 0:
		return a.printList(page)
	case len(f.states) > 0:
		fmt.Fprintf(a.err, "no run in %s is %s\n", onOneLine(a.journalPath), strings.Join(f.states, " or "))
	default:
		fmt.Fprintf(a.err, "there are no runs in %s\n", onOneLine(a.journalPath))
	}
	return nil
}

func (a *app) printList(page list) error {
	width := 0
	if s := screenOf(a.out, os.Getenv); s.terminal {
		width = s.width()
	}
	for _, line := range listLines(page.Items, width) {
		if err := a.printf("%s\n", line); err != nil {
			return err
		}
	}
	if page.More {
		return a.printf("… and more; --limit 0 lists all, this list had --limit %d\n", len(page.Items))
	}
	return nil
}

// nameRoom is how much of a run's name is shown at least beside the rest of its
// line.
const nameRoom = 12

// listLines are runs as a table. Where a terminal of that width is too narrow for
// it, names are cut, or else each run has two lines. Without a width it is as wide
// as it is.
func listLines(items []control.Standing, width int) []string {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	names := 0
	for _, r := range items {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", r.ID, standingNow(r), plural(r.Cycles, "cycle"), clock(r.Created))
		names = max(names, min(columns(r.Name), nameRoom)+len(startedBy(r.Run)))
	}
	_ = w.Flush() // a builder takes everything
	lines := strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")
	fits := width == 0 || columns(lines[0])+names <= width
	for i, r := range items {
		if fits {
			lines[i] = named(lines[i], r.Run, width)
			continue
		}
		second := fmt.Sprintf("  %s  %s  ", plural(r.Cycles, "cycle"), clock(r.Created))
		lines[i] = r.ID + "  " + standingNow(r) + "\n" + clip(named(second, r.Run, width), width)
	}
	return lines
}

// named puts as much of a run's name behind a line as leaves room for who started
// it.
func named(line string, r journal.Run, width int) string {
	room := 60
	if width > 0 {
		room = min(room, max(width-columns(line)-len(startedBy(r)), 1))
	}
	return line + firstLine(r.Name, room) + startedBy(r)
}
