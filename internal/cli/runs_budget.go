package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/journal"
)

func (a *app) budgetCommand() *cobra.Command {
	var f verbFlags
	c := &cobra.Command{
		Use:   "budget RUN SETTING VALUE",
		Short: "Change a limit of a run, also while it is running",
		Long: `Changes a limit of a run. VALUE is a number, or none to remove the limit. SETTING is one of these, with
its default in parentheses:

` + limitList() + `
A run that reaches a limit stops. In the agent file, on_limit says how reaching the cycle limit counts,
and budgets.actions says it for the other limits: ok stops the run and counts as success, ask parks the
run until the limit is raised here. 'pawl runs show' says the smallest value that lets the run continue;
a smaller one is refused. A cost limit is refused for a run whose model has no known price. Example:

  budgets: {max_tool_calls: 50, actions: {max_tool_calls: ask}}`,
		Example: "  pawl runs budget k7x2 usd_per_run 10 --resume\n" +
			"  pawl runs budget k7x2 max_cycles 80\n" +
			"  pawl runs budget k7x2 max_wall_time_seconds none",
		Args: cobra.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			value, err := limitValue(args[1], args[2])
			if err != nil {
				return err
			}
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				return s.deliverAndResume(c.Context(), r, journal.Command{Kind: journal.Raise, Setting: args[1], Value: value}, f)
			})
		},
	}
	f.resumable(c, &a.recordPath)
	return c
}

// limitList names every limit in a line of its own.
func limitList() string {
	var b strings.Builder
	for _, s := range budget.Table() {
		fmt.Fprintf(&b, "  %-30s  %s\n", s.Name, s.About)
	}
	return b.String()
}

// limitValue checks a limit's new value by the rules of the setting.
func limitValue(setting, text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if text == none {
		value, err = budget.None, nil
	} else if err != nil || value < 0 {
		return 0, usagef("VALUE is %q; it must be a number, or none", text)
	}
	switch err := new(budget.Limits).Set(setting, value); {
	case errors.Is(err, budget.ErrUnknownSetting):
		return 0, usagef("there is no limit %q; it can be %s", setting, strings.Join(budget.Settings(), ", "))
	case err != nil:
		return 0, usagef("VALUE is %q: %s", text, strings.TrimPrefix(err.Error(), budget.ErrBadValue.Error()+": "))
	}
	return value, nil
}
