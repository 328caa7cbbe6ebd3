package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/journal"
)

// node is a run with the runs it started and those that share its events.
type node struct {
	control.Standing
	Children []node `json:"children,omitempty"`
	Forks    []node `json:"forks,omitempty"`
}

func (a *app) treeCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "tree RUN",
		Short:   "Show a run with the runs it started and its forks",
		Example: "  pawl runs tree k7x2",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withRun(c.Context(), toRead, args[0], func(s *session, r journal.Run) error {
				n, err := s.tree(c.Context(), r)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(n)
				}
				return a.printTree(n, 0)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// tree reads a run and, oldest first, everything below it.
func (s *session) tree(ctx context.Context, r journal.Run) (node, error) {
	standing, err := s.desk.Standing(ctx, r)
	n := node{Standing: standing}
	if err != nil {
		return n, err
	}
	children, err := s.store.Runs(ctx, journal.Filter{Parent: r.ID})
	if err != nil {
		return n, err
	}
	if n.Children, err = s.trees(ctx, children); err != nil {
		return n, err
	}
	forks, err := s.store.Runs(ctx, journal.Filter{ForkOf: r.ID})
	if err != nil {
		return n, err
	}
	n.Forks, err = s.trees(ctx, forks)
	return n, err
}

// trees reads runs that are newest first.
func (s *session) trees(ctx context.Context, rows []journal.Run) ([]node, error) {
	var nodes []node
	for _, r := range slices.Backward(rows) {
		n, err := s.tree(ctx, r)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func (a *app) printTree(n node, depth int) error {
	what := firstLine(n.Name, 60)
	if n.ForkOf != "" {
		what += fmt.Sprintf("  (fork of %s at %d)", n.ForkOf, n.ForkSeq)
	}
	if err := a.printf("%s%s  %s  %s  %s\n", strings.Repeat("  ", depth), n.ID, standingNow(n.Standing), plural(n.Cycles, "cycle"), what); err != nil {
		return err
	}
	for _, child := range slices.Concat(n.Children, n.Forks) {
		if err := a.printTree(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}
