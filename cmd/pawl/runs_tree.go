package main

import (
	"context"
	"strings"

	"github.com/pawlrun/pawl/journal"
	"github.com/spf13/cobra"
)

// node is a run with the runs it started.
type node struct {
	journal.Run
	Children []node `json:"children,omitempty"`
}

func (a *app) treeCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "tree RUN",
		Short:   "Show a run with the runs it started",
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
	n := node{Run: r}
	children, err := s.store.Runs(ctx, journal.Filter{Parent: r.ID})
	if err != nil {
		return n, err
	}
	for i := len(children) - 1; i >= 0; i-- {
		child, err := s.tree(ctx, children[i])
		if err != nil {
			return n, err
		}
		n.Children = append(n.Children, child)
	}
	return n, nil
}

func (a *app) printTree(n node, depth int) error {
	if err := a.printf("%s%s  %s  %s  %s\n", strings.Repeat("  ", depth), n.ID, standing(n.Run), plural(n.Cycles, "cycle"), firstLine(n.Name, 60)); err != nil {
		return err
	}
	for _, child := range n.Children {
		if err := a.printTree(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}
