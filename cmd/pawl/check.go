package main

import (
	"fmt"

	"github.com/pawlrun/pawl/spec"
	"github.com/spf13/cobra"
)

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "Validate agent files without calling a model",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			bad := false
			for _, path := range args {
				if _, err := spec.ReadAgent(path); err != nil {
					fmt.Fprintln(a.err, err)
					bad = true
					continue
				}
				fmt.Fprintf(a.out, "%s: ok\n", path)
			}
			if bad {
				return &exitError{code: exitUsage}
			}
			return nil
		},
	}
}
