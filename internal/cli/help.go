package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpCommand is cobra's own, except that an unknown command is an error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		Example: `  pawl help run
  pawl help runs fork`,
		ValidArgsFunction: func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			about, _, err := c.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, child := range about.Commands() {
				if child.IsAvailableCommand() && strings.HasPrefix(child.Name(), begun) {
					names = append(names, cobra.CompletionWithDesc(child.Name(), child.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			about, left, err := c.Root().Find(args)
			if len(args) > 0 && err != nil {
				if other := elsewhere(args[0]); other != nil {
					return other
				}
			}
			if err != nil || len(left) > 0 {
				return usagef("there is no command %q; 'pawl help' lists them", strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// flagError suggests the intended flag for an unknown one, and describes the
// expected value for an invalid one instead of the parser's error.
func flagError(c *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		word := cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName())
		like := flagsLike(c, word)
		switch verb, _, _ := c.Find([]string{word}); {
		case len(like) > 0:
			return fmt.Errorf("%w; did you mean --%s?", err, strings.Join(like, " or --"))
		case verb != c && verb.Name() == word:
			return fmt.Errorf("%w; did you mean '%s'?", err, verb.CommandPath())
		}
		return err
	}
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	f := wrong.GetFlag()
	expected := ""
	switch f.Value.Type() {
	case "float64":
		expected = "a number"
	case "int", "int64":
		expected = "a whole number"
	case "bool":
		expected = "true or false"
	case "stringSlice":
		expected = "one value, or several with commas between them"
	default:
		return err
	}
	return fmt.Errorf("--%s is %q; it must be %s: %s", f.Name, wrong.GetValue(), expected, f.Usage)
}

// flagsLike returns the flags of a command that are similar to an unknown one, by
// the rule that cobra uses for commands. It accepts a word after a single dash too.
func flagsLike(c *cobra.Command, word string) []string {
	word, _, _ = strings.Cut(word, "=")
	flags := &cobra.Command{SuggestionsMinimumDistance: c.Root().SuggestionsMinimumDistance}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	return flags.SuggestionsFor(word)
}
