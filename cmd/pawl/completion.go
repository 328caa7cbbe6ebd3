package main

import (
	"os"
	"strings"

	"github.com/pawlrun/pawl/journal"
	"github.com/spf13/cobra"
)

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print the completion script of a shell",
		Long:  "Prints what makes a shell complete commands, flags, agent files and run ids.",
		Example: `  source <(pawl completion bash)
  pawl completion zsh > "${fpath[1]}/_pawl"
  pawl completion fish > ~/.config/fish/completions/pawl.fish`,
		ValidArgs: shells,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(c *cobra.Command, args []string) error {
			switch root := c.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
		},
	}
}

// completeArguments gives every command that takes a run or a file the
// completion of it, by the names that its usage line has for arguments.
func (a *app) completeArguments(c *cobra.Command) {
	_, arguments, _ := strings.Cut(c.Use, " ")
	switch {
	case c.ValidArgsFunction != nil || c.ValidArgs != nil:
	case strings.HasPrefix(arguments, "RUN"):
		c.ValidArgsFunction = a.completeRun
	case strings.HasPrefix(arguments, "FILE"):
		c.ValidArgsFunction = completeFile
	}
	if c.Flags().Lookup("continue") != nil {
		_ = c.RegisterFlagCompletionFunc("continue", a.completeRun)
	}
	for _, child := range c.Commands() {
		a.completeArguments(child)
	}
}

func completeFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// mostCompleted bounds what one press of the tab key reads.
const mostCompleted = 100

// completeRun offers the newest runs with their names. Whatever goes wrong
// offers nothing: there is nobody to tell.
func (a *app) completeRun(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 {
		return nil, nothing
	}
	if _, err := os.Stat(a.journalPath); err != nil {
		return nil, nothing
	}
	s, err := a.open(c.Context(), toRead)
	if err != nil {
		return nil, nothing
	}
	defer s.close()
	rows, err := s.store.Runs(c.Context(), journal.Filter{Limit: mostCompleted})
	if err != nil {
		return nil, nothing
	}
	var ids []string
	for _, r := range rows {
		if strings.HasPrefix(r.ID, prefix) {
			ids = append(ids, r.ID+"\t"+firstLine(r.Name, 40)+" "+standing(r))
		}
	}
	return ids, nothing | cobra.ShellCompDirectiveKeepOrder
}
