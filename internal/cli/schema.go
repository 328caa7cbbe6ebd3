package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/files/schema"
)

func (a *app) schemaCommand() *cobra.Command {
	names := schema.Kinds()
	return &cobra.Command{
		Use:   "schema " + strings.Join(names, "|"),
		Short: "Print the JSON Schema of a kind of file",
		Long: `Prints the JSON Schema (2020-12) of agent files, workflow files, scripts of a scripted model, or config files, so
that an editor completes and checks them. 'pawl check' also checks rules that no schema can express.`,
		Example:   "  pawl schema agent > agent.schema.json",
		ValidArgs: names,
		Args:      oneOf(names),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := schema.Of(args[0])
			if err != nil {
				return err
			}
			_, err = a.out.Write(text)
			return err
		},
	}
}

// oneOf takes one argument, which is one of these words.
func oneOf(words []string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 1 && slices.Contains(words, args[0]) {
			return nil
		}
		if len(args) == 0 {
			return fmt.Errorf("one of %s is missing", strings.Join(words, ", "))
		}
		return fmt.Errorf("got %q, want one of %s", strings.Join(args, " "), strings.Join(words, ", "))
	}
}
