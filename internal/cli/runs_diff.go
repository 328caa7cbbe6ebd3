package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/engine/compare"
	"github.com/pawlrun/pawl/journal"
)

func (a *app) diffCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff RUN RUN",
		Short: "Compare two runs",
		Long: `Compares two runs. It names the first event that differs and shows the cycles of both runs from there,
side by side. Not compared: ids, times, positions, limits and budget reservations, pauses, failed
attempts, and the order in which the calls of one answer, or steps that go at once, finished.

Runs that the two started are compared as well: those of a workflow or a team by their steps with
iteration and attempt, agents that were called as tools in the order of the calls.`,
		Example: "  pawl runs diff k7x2 p4c9\n  pawl runs diff k7x2 p4c9 --json",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withRun(c.Context(), toRead, args[0], func(s *session, left journal.Run) error {
				right, err := s.find(c.Context(), args[1])
				if err != nil {
					return err
				}
				d, err := compare.Runs(c.Context(), s.store, left.ID, right.ID)
				if err != nil {
					return err
				}
				return a.show(asJSON, d, func() error { return a.printDiff(d) })
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (a *app) printDiff(d compare.Diff) error {
	var b strings.Builder
	same, all := d.Alike()
	switch {
	case d.PartAt == nil && all && same == 0:
		fmt.Fprintf(&b, "%s and %s are the same: %s\n", d.Left, d.Right, plural(int(d.Same), "event"))
	case d.PartAt == nil && all:
		fmt.Fprintf(&b, "%s and %s are the same: %s, and %s below\n", d.Left, d.Right, plural(int(d.Same), "event"), plural(same, "run"))
	default:
		printOwn(&b, &d)
		printBelow(&b, &d, "")
		if same > 0 {
			fmt.Fprintf(&b, "\n%s below: the same in both\n", plural(same, "run"))
		}
	}
	return a.printf("%s", b.String())
}

// printOwn prints the differences of the two runs themselves.
func printOwn(b *strings.Builder, d *compare.Diff) {
	if d.PartAt == nil {
		fmt.Fprintf(b, "%s and %s have all their %s in common, and part below\n", d.Left, d.Right, plural(int(d.Same), "event"))
		return
	}
	fmt.Fprintf(b, "%s and %s have %s in common and part here:\n", d.Left, d.Right, plural(int(d.Same), "event"))
	fmt.Fprintf(b, "  %s  %s\n  %s  %s\n", d.Left, d.PartAt.LeftText, d.Right, d.PartAt.RightText)
	for _, c := range d.Cycles {
		if c.Same {
			continue
		}
		fmt.Fprintf(b, "\ncycle %d\n", c.Cycle)
		printSide(b, c.Left, d.Left)
		printSide(b, c.Right, d.Right)
	}
}

func printSide(b *strings.Builder, c *compare.CycleSide, run string) {
	if c == nil {
		fmt.Fprintf(b, "  %s  had ended\n", run)
		return
	}
	fmt.Fprintf(b, "  %s  %d in, %d out, %s  %s\n", run, c.Usage.Input, c.Usage.Output, usd(c.Cost, c.Usage), firstLine(c.Text, 100))
	for i, call := range c.Calls {
		fmt.Fprintf(b, "    → %s\n      %s\n", firstLine(call, 100), firstLine(c.Results[i], 100))
	}
	if c.Outcome != "" {
		fmt.Fprintf(b, "    ends: %s\n", c.Outcome)
	}
}

// printBelow prints the differences of the children of two runs, with the path of
// steps.
func printBelow(b *strings.Builder, d *compare.Diff, way string) {
	for _, pair := range d.Below {
		at := way + pair.Spot.String()
		if pair.PartAt != nil {
			fmt.Fprintf(b, "\n%s: ", at)
			printOwn(b, &pair)
		}
		printBelow(b, &pair, at+", ")
	}
	for _, only := range []struct {
		in  string
		all []compare.Child
	}{{d.Left, d.OnlyLeft}, {d.Right, d.OnlyRight}} {
		for _, x := range only.all {
			fmt.Fprintf(b, "\n%s%s: only in %s, run %s %s\n", way, x.Spot, only.in, x.Run, firstLine(x.Name, 60))
		}
	}
}
