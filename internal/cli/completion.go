package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
)

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print a shell completion script",
		Long:  "Prints a script that makes a shell complete commands, flags, agent files and run ids.",
		Example: `  source <(pawl completion bash)
  pawl completion zsh > "${fpath[1]}/_pawl"
  pawl completion fish > ~/.config/fish/completions/pawl.fish`,
		ValidArgs: shells,
		Args:      oneOf(shells),
		RunE: func(c *cobra.Command, args []string) error {
			switch root := c.Root(); args[0] {
			case "bash":
				if err := a.printf("%s", bashWords); err != nil {
					return err
				}
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

// bashWords replaces the functions of the package bash-completion that the script
// needs; without them pressing the tab key prints errors.
const bashWords = `if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref()
    {
        words=("${COMP_WORDS[@]}")
        cword=$COMP_CWORD
        cur=${COMP_WORDS[COMP_CWORD]}
        prev=${COMP_WORDS[COMP_CWORD-1]}
    }
fi
if ! declare -F _filedir >/dev/null; then
    _filedir()
    {
        local IFS=$'\n'
        compopt -o filenames
        COMPREPLY=($(compgen -f -- "$cur"))
    }
fi

`

// completeArguments adds completion to every command that takes a run or a file,
// based on the argument names of its usage line.
func (a *app) completeArguments(c *cobra.Command) {
	_, arguments, _ := strings.Cut(c.Use, " ")
	switch {
	case c.ValidArgsFunction != nil || c.ValidArgs != nil:
	case strings.HasPrefix(arguments, "RUN"):
		c.ValidArgsFunction = a.completeRun
	case strings.HasPrefix(arguments, "FILE"):
		c.ValidArgsFunction = completeFile
	}
	for name, complete := range a.flagCompletions() {
		if f := c.Flags().Lookup(name); f != nil && f.Value.Type() != "int" { // --limit of lists is a number
			_ = c.RegisterFlagCompletionFunc(name, complete)
		}
	}
	for _, child := range c.Commands() {
		a.completeArguments(child)
	}
}

// flagCompletions returns the completions of flags with known values, by flag.
func (a *app) flagCompletions() map[string]cobra.CompletionFunc {
	fixed := func(values ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	limits := budget.Settings()
	for i := range limits {
		limits[i] += "="
	}
	var inStates []string
	for _, s := range journal.States() {
		inStates = append(inStates, string(s))
	}
	return map[string]cobra.CompletionFunc{
		"continue": func(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return a.completeRun(c, nil, prefix)
		},
		"approve": fixed(string(agent.ApproveAsk), string(agent.ApproveDeny), string(agent.ApproveAll)),
		"view":    fixed(slices.Sorted(maps.Keys(vocabularies()))...),
		"state":   fixed(inStates...),
		"limit":   cobra.FixedCompletions(limits, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace),
		"model":   a.completeModel,
	}
}

// completeModel offers the models whose provider can be called. It offers files
// too, because a script is a file.
func (a *app) completeModel(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	list, err := a.listModels("", true)
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var names []string
	for _, m := range list.Models {
		if strings.HasPrefix(m.Model, prefix) {
			names = append(names, m.Model)
		}
	}
	return names, cobra.ShellCompDirectiveDefault
}

func completeFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// mostCompleted bounds what one press of the tab key reads.
const mostCompleted = 100

// completeRun offers the newest runs with their names. On any error it offers
// nothing, because completion cannot report errors.
func (a *app) completeRun(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 {
		return nil, nothing
	}
	if a.noJournal() {
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
			ids = append(ids, r.ID+"\t"+firstLine(r.Name, 40)+" "+stateText(r))
		}
	}
	return ids, nothing | cobra.ShellCompDirectiveKeepOrder
}
