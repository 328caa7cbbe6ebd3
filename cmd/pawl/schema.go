package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/spec"
)

func (a *app) schemaCommand() *cobra.Command {
	kinds := spec.SchemaKinds()
	return &cobra.Command{
		Use:   "schema " + strings.Join(kinds, "|"),
		Short: "Print the JSON Schema of a kind of file",
		Long: `Prints the JSON Schema (2020-12) of agent files, scripts of a scripted model, or config files, so
that an editor completes and checks them. 'pawl check' knows more rules than a schema can tell.`,
		Example:   "  pawl schema agent > .pawl/agent.schema.json",
		ValidArgs: kinds,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := spec.Schema(args[0])
			if err != nil {
				return err
			}
			_, err = a.out.Write(text)
			return err
		},
	}
}
