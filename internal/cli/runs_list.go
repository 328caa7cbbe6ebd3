package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/journal"
)

type listFlags struct {
	json     bool
	children bool
	states   []string
	limit    int
}

func (f *listFlags) flags(c *cobra.Command) {
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	c.Flags().StringSliceVar(&f.states, "state", nil, "only runs in this state: queued, running, waiting, parked, paused, ended")
	c.Flags().BoolVar(&f.children, "children", false, "also the runs that others started")
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
	Items []summarized `json:"items"`
	// More reports that the limit left some out.
	More bool `json:"more,omitempty"`
}

func (a *app) listRuns(ctx context.Context, f listFlags) error {
	filter := journal.Filter{Roots: !f.children}
	var err error
	if filter.States, err = parseStates(f.states); err != nil {
		return err
	}
	if f.limit < 0 {
		return usagef("--limit is %d; it must be 0 or more", f.limit)
	}
	s, err := a.open(ctx, toRead)
	switch {
	case f.json && errors.Is(err, errNoJournal):
		return a.printJSON(list{Items: []summarized{}}) // for a program an empty list is no error
	case err != nil:
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
	statuses, err := s.controller.RunStatuses(ctx, rows)
	if err != nil {
		return err
	}
	page.Items = s.summaries(ctx, statuses)
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

// Limits of columns: the width of a run's name and of its model, and the least
// width of its input on the same line.
const (
	nameRoom  = 24
	modelRoom = 32
	inputRoom = 16
)

// listLines returns runs as a table, whose last column is as much of the input as
// fits. On a narrow terminal each run has two lines. Width 0 means unlimited.
func listLines(items []summarized, width int) []string {
	names, models := nameRoom, modelRoom
	if width == 0 {
		names, models = 0, 0 // whole
	}
	rows := make([][]string, len(items))
	for i, r := range items {
		rows[i] = []string{
			r.ID, stateNow(r.RunStatus), r.cost(), r.did(),
			firstLine(r.Name, names) + startedBy(r.Run), clock(r.Created), firstLine(r.Model, models),
		}
	}
	lines := aligned(rows)
	if width > 0 && slices.ContainsFunc(lines, func(line string) bool { return columns(line)+inputRoom > width }) {
		for i, row := range rows {
			lines[i] = clip(strings.Join(row[:5], "  "), width) + "\n" + withInput("  "+strings.Join(row[5:], "  ")+"  ", items[i].Input, width)
		}
		return lines
	}
	for i := range lines {
		lines[i] = withInput(lines[i], items[i].Input, width)
	}
	return lines
}

// withInput appends as much of a run's input to a line as fits.
func withInput(line, input string, width int) string {
	if width == 0 {
		return line + firstLine(input, 100)
	}
	return clip(line+firstLine(input, width), width)
}

// aligned aligns cells in columns, including wide characters.
func aligned(rows [][]string) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(cell))
		}
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		for j, cell := range row {
			lines[i] += cell + strings.Repeat(" ", widths[j]-columns(cell)+2)
		}
	}
	return lines
}
