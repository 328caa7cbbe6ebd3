package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/journal"
)

// verbFlags are the flags of the verbs that act on a run.
type verbFlags struct {
	reason string
	resume bool
	output
}

func (f *verbFlags) resumable(c *cobra.Command, record *string) {
	c.Flags().BoolVar(&f.resume, "resume", false, "and resume the run at once")
	recordFlag(c, record)
	f.output.flagsUnless(c, "without --resume")
}

func (f *verbFlags) check() error {
	if err := cmp.Or(textual("--reason", f.reason), f.output.check()); err != nil || f.resume {
		return err
	}
	return f.idle("needs --resume; without it this command drives no run")
}

func (a *app) pauseCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "pause RUN",
		Short:   "Pause a run after the current step",
		Example: "  pawl runs pause k7x2",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				if r.State == journal.Parked || r.State == journal.Paused {
					return usagef("run %s is not running: %s", r.ID, stateText(r))
				}
				return s.deliver(c.Context(), r, journal.Command{Kind: journal.Pause}, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (a *app) cancelCommand() *cobra.Command {
	var asJSON bool
	var reason string
	c := &cobra.Command{
		Use:        "cancel RUN",
		SuggestFor: []string{"stop", "kill"},
		Short:      "Cancel a run; it cannot be resumed",
		Example:    "  pawl runs cancel k7x2 --reason \"wrong branch\"",
		Args:       cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := textual("--reason", reason); err != nil {
				return err
			}
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				return s.deliver(c.Context(), r, journal.Command{Kind: journal.Cancel, Text: reason}, asJSON)
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the record")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
