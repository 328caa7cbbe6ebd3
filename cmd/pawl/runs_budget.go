package main

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
		Short: "Change a limit of a run, also while it goes",
		Long: `Changes a limit of a run. VALUE is a number, or none to take the limit away. SETTING is one of these;
what holds where nobody has said stands in brackets:

` + limitList() + `
Reaching a limit stops a run. In the agent file on_limit says what reaching the cycle cap means, and
budgets.actions what another limit does: ok stops the run and counts as well, ask parks it until the
limit is raised here, as far as 'pawl runs show' says at least: a value with which the run would park
again at once is refused, and changes nothing. So is a cap in money on a run whose model has no price
that is known: it could not be kept. For example:

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
	for _, setting := range budget.Settings() {
		fmt.Fprintf(&b, "  %-30s  %s\n", setting, budget.About(setting))
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
