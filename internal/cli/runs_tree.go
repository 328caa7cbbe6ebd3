package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// node is a run with its children and its forks.
type node struct {
	summarized
	// Step names the step or the judge that the run performs, with iteration and
	// attempt.
	Step string `json:"step,omitempty"`
	// Status is the status of the run's outcome or step, or else its state.
	Status string `json:"status"`
	// Reason is why its step failed, if that is not the run's own end.
	Reason   string `json:"reason,omitempty"`
	Children []node `json:"children,omitempty"`
	// Skipped lists the steps of a workflow that did not run.
	Skipped []event.StepSkipped `json:"skipped,omitempty"`
	Forks   []node              `json:"forks,omitempty"`
}

func (a *app) treeCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "tree RUN",
		Short: "Show a run with the runs it started and its forks",
		Long: `Shows a run with all that is below it: for each run how it stands, what it cost with those below it,
and which step of its workflow it is, with iteration and attempt; the steps that were skipped; and forks.`,
		Example: "  pawl runs tree k7x2",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withRun(c.Context(), toRead, args[0], func(s *session, r journal.Run) error {
				n, err := s.tree(c.Context(), r)
				if err != nil {
					return err
				}
				return a.show(asJSON, n, func() error { return a.printTree(n, 0) })
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// tree reads a run and its descendants, oldest first. The journal of a parent has
// what its children did, so that thousands of steps need not be read.
func (s *session) tree(ctx context.Context, r journal.Run) (node, error) {
	runs, err := s.family(ctx, r)
	if err != nil {
		return node{}, err
	}
	statuses, err := s.controller.RunStatuses(ctx, runs)
	if err != nil {
		return node{}, err
	}
	started := map[string][]control.RunStatus{}
	for _, x := range statuses[1:] {
		started[x.Parent] = append(started[x.Parent], x)
	}
	return s.grow(ctx, node{summarized: summarized{RunStatus: statuses[0]}}, started)
}

// grow adds the descendants of a run, and its usage if its parent's journal does
// not have that.
func (s *session) grow(ctx context.Context, n node, started map[string][]control.RunStatus) (node, error) {
	var v drive.Viewed
	children := started[n.ID]
	if untold := n.Cost == nil; untold || len(children) > 0 || n.Kind != agent.Kind {
		// A run that cannot be read is listed from its row.
		if err := v.Read(ctx, s.store, n.ID); err != nil && ctx.Err() != nil {
			return n, err
		}
		if n.Skipped = v.Skipped(); untold {
			n.Usage, n.Cost = v.Run().Usage, v.Run().Cost
		}
	}
	for _, x := range children {
		child := node{summarized: summarized{RunStatus: x}}
		if c := v.Child(x.ID); c != nil {
			child.as(c)
		}
		child, err := s.grow(ctx, child, started)
		if err != nil {
			return n, err
		}
		n.Children = append(n.Children, child)
	}
	n.stands()
	forks, err := s.store.Runs(ctx, journal.Filter{ForkOf: n.ID})
	for _, f := range slices.Backward(forks) {
		fork, err := s.tree(ctx, f)
		if err != nil {
			return n, err
		}
		n.Forks = append(n.Forks, fork)
	}
	return n, err
}

// as applies what the parent's journal has about this run.
func (n *node) as(c *view.ChildRun) {
	n.Step, n.Usage, n.Cost = c.Step, c.Used, c.Cost
	if f := c.Finished; f != nil {
		n.Status = string(f.Status)
		if f.Error != nil {
			n.Reason = f.Error.Message
		}
	}
}

// stands sets the status if no step sets it.
func (n *node) stands() {
	var o event.Outcome
	switch {
	case n.Status != "":
	case json.Unmarshal(n.Outcome, &o) == nil:
		n.Status = string(o.Status)
	default:
		n.Status = string(n.State)
	}
}

// line returns the node in one line.
func (n *node) line() string {
	state := stateNow(n.RunStatus)
	if n.State == journal.Ended {
		state = cmp.Or(map[string]string{string(event.StatusCompleted): "done"}[n.Status], n.Status)
		if why := cmp.Or(n.Reason, n.Detail); why != state {
			state += ": " + firstLine(why, 100)
		}
	}
	parts := []string{n.ID, state, n.cost()}
	if n.Cycles > 0 {
		parts = append(parts, plural(n.Cycles, "cycle"))
	}
	if n.Step != "" {
		parts = append(parts, n.Step)
	}
	parts = append(parts, firstLine(n.Name, 60))
	if n.ForkOf != "" {
		parts = append(parts, fmt.Sprintf("(fork of %s at %d)", n.ForkOf, n.ForkSeq))
	}
	return strings.Join(parts, "  ")
}

// family returns a run and its descendants, each after its parent.
func (s *session) family(ctx context.Context, r journal.Run) ([]journal.Run, error) {
	rows, err := s.store.Runs(ctx, journal.Filter{Root: r.Placed().Root})
	if err != nil {
		return nil, err
	}
	slices.Reverse(rows) // ancestors first
	return journal.Below(rows, r.ID), nil
}

func (a *app) printTree(n node, depth int) error {
	room := strings.Repeat("  ", depth)
	if err := a.printf("%s%s\n", room, n.line()); err != nil {
		return err
	}
	for _, child := range n.Children {
		if err := a.printTree(child, depth+1); err != nil {
			return err
		}
	}
	for _, d := range n.Skipped {
		if err := a.printf("%s  -  skipped: %s  %s\n", room, firstLine(d.Reason, 100), d.Step); err != nil {
			return err
		}
	}
	for _, fork := range n.Forks {
		if err := a.printTree(fork, depth+1); err != nil {
			return err
		}
	}
	return nil
}
