package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/journal"
)

// The groups of the verbs of runs.
const (
	groupRead   = "read"
	groupDecide = "decide"
	groupKeep   = "keep"
)

func (a *app) runsCommand() *cobra.Command {
	var f listFlags
	c := &cobra.Command{
		Use:   "runs",
		Short: "List, inspect and control runs",
		Long: `Without a subcommand, lists the runs of the journal, newest first: id, state, cost, cycles, name,
start, model and input. Every subcommand takes a run id or a unique prefix of one.

States: queued (not started), running, waiting (for a decision, in a process that is still running),
parked (waiting without a process: for a decision, a message, or a resume), paused (on request), ended.
A parked run is shown as answered when it has what it waited for and only has to be resumed.`,
		Example: `  pawl runs
  pawl runs --state parked
  pawl runs show k7x2
  pawl runs resume k7x2`,
		Args: noSuchVerb,

		SuggestionsMinimumDistance: 2,
		RunE:                       func(c *cobra.Command, _ []string) error { return a.listRuns(c.Context(), f) },
	}
	f.flags(c)
	c.AddGroup(
		&cobra.Group{ID: groupRead, Title: "Look:"},
		&cobra.Group{ID: groupDecide, Title: "Control:"},
		&cobra.Group{ID: groupKeep, Title: "Journal:"},
	)
	add := func(group string, verbs ...*cobra.Command) {
		for _, v := range verbs {
			v.GroupID = group
			c.AddCommand(v)
		}
	}
	add(groupRead, a.listCommand(), a.showCommand(), a.logCommand(), a.eventsCommand(), a.treeCommand(), a.replayCommand(), a.diffCommand(), a.exportCommand(), a.pageCommand(), a.watchCommand())
	add(groupDecide, a.resumeCommand(), a.retryCommand(), a.forkCommand(), a.pauseCommand(), a.cancelCommand(), a.inputCommand(),
		a.approveCommand(), a.rejectCommand(), a.budgetCommand())
	add(groupKeep, a.verifyCommand(), a.removeCommand(), a.pruneCommand())
	return c
}

// noSuchVerb returns an error with the verbs similar to an unknown one.
func noSuchVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath())
	if args[0] == "help" {
		verb, _, _ := c.Find(args[1:])
		return fmt.Errorf("%w; did you mean '%s --help'?", err, verb.CommandPath())
	}
	if like := c.SuggestionsFor(args[0]); len(like) > 0 {
		return fmt.Errorf("%w; did you mean %s?", err, strings.Join(like, " or "))
	}
	return fmt.Errorf("%w; write the command before the run, as in 'pawl runs show k7x2'", err)
}

func parseStates(names []string) ([]journal.State, error) {
	var out []journal.State
	for _, name := range names {
		if !slices.Contains(journal.States(), journal.State(name)) {
			return nil, usagef("--state is %q; it can be queued, running, waiting, parked, paused or ended", name)
		}
		out = append(out, journal.State(name))
	}
	return out, nil
}

// stateText returns the state of a run, with the reason.
func stateText(r journal.Run) string {
	if r.Detail == "" || r.Detail == string(r.State) {
		return string(r.State)
	}
	return string(r.State) + ": " + r.Detail
}

// stateNow is stateText for a list, which has no column for a driver.
func stateNow(r control.RunStatus) string {
	if r.Undriven {
		return stateText(r.Run) + ", no process drives it"
	}
	return stateText(r.Run) + stateNote(r)
}

// stateNote returns the text after the state of a run that parked, or is about to.
func stateNote(r control.RunStatus) string {
	switch {
	case r.State == journal.Queued && r.ForkOf != "":
		return ", a fork that waits to be run; resume it"
	case r.Pausing:
		return ", pausing"
	case r.Answered:
		return ", answered; resume it"
	case r.Expired:
		return ", expired; resume it"
	case r.Worker != "" && r.State != journal.Parked:
		return ", at " + r.Worker
	}
	return ""
}

// clock formats a time for people at this machine.
func clock(t time.Time) string { return t.Local().Format(time.DateTime) }

// parseAge reads a duration that may also be in days ("30d").
func parseAge(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		if err == nil && !(n >= 0 && n <= 100*365) {
			err = errors.New("out of range")
		}
		d = time.Duration(n * float64(24*time.Hour))
	}
	if err != nil || d < 0 {
		return 0, usagef("%q is not an age; write it like 30d, 12h or 90m", s)
	}
	return d, nil
}
