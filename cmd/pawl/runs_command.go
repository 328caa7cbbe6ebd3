package main

import (
	"context"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/spf13/cobra"
)

// verbFlags are the flags of the verbs that act on a run.
type verbFlags struct {
	reason string
	resume bool
	output
}

func (f *verbFlags) resumable(c *cobra.Command) {
	c.Flags().BoolVar(&f.resume, "resume", false, "and go on with the run at once")
	f.output.flags(c)
}

func (a *app) pauseCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "pause RUN",
		Short:   "Park a run at its next boundary",
		Example: "  pawl runs pause k7x2",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				if r.State == journal.Parked || r.State == journal.Paused {
					return usagef("run %s is not going: %s", r.ID, standing(r))
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
		Use:     "cancel RUN",
		Short:   "End a run for good; what it was doing is stopped first",
		Example: "  pawl runs cancel k7x2 --reason \"wrong branch\"",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				return s.deliver(c.Context(), r, journal.Command{Kind: journal.Cancel, Text: reason}, asJSON)
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the record")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (a *app) inputCommand() *cobra.Command {
	var f verbFlags
	c := &cobra.Command{
		Use:     "input RUN TEXT",
		Short:   "Add a message to a run; it is read at the next boundary",
		Long:    "Adds a message to a run. TEXT may be \"-\" for stdin.",
		Example: "  pawl runs input k7x2 \"Leave the tests alone\"\n  pawl runs input k7x2 \"Yes, use port 8080\" --resume",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			text, err := a.input(args[1:])
			if err != nil {
				return err
			}
			if strings.TrimSpace(text) == "" {
				return usagef("TEXT is empty")
			}
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				return s.deliverAndResume(c.Context(), r, journal.Command{Kind: journal.Input, Text: text}, f)
			})
		},
	}
	f.resumable(c)
	return c
}

func (a *app) approveCommand() *cobra.Command {
	c := a.decisionCommand(journal.Approve)
	c.Use, c.Short = "approve RUN CALL", "Approve a call that waits for a decision"
	c.Example = "  pawl runs approve k7x2 k7x2…-3-1\n  pawl runs approve k7x2 3-1 --reason \"reviewed\" --resume"
	return c
}

func (a *app) rejectCommand() *cobra.Command {
	c := a.decisionCommand(journal.Reject)
	c.Use, c.Short = "reject RUN CALL", "Reject a call that waits for a decision; the model is told why"
	c.Example = "  pawl runs reject k7x2 3-1 --reason \"not on a Friday\" --resume"
	return c
}

func (a *app) decisionCommand(kind journal.CommandKind) *cobra.Command {
	var f verbFlags
	c := &cobra.Command{
		Long: "CALL is the id that the run's pending approval names, or the end of it (\"3-1\").",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if kind == journal.Reject && strings.TrimSpace(f.reason) == "" {
				return usagef("a rejection needs a --reason: it is what the model is told")
			}
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				id, err := s.pendingCall(c.Context(), r, args[1])
				if err != nil {
					return err
				}
				return s.deliverAndResume(c.Context(), r, journal.Command{Kind: kind, CallID: id, Text: f.reason}, f)
			})
		},
	}
	c.Flags().StringVar(&f.reason, "reason", "", "why, for the record and for the model")
	f.resumable(c)
	return c
}

// pendingCall finds the call that waits for a decision and that a user named.
func (s *session) pendingCall(ctx context.Context, r journal.Run, name string) (string, error) {
	m, err := s.engine.Inspect(ctx, r.ID)
	if err != nil {
		return "", err
	}
	pending := m.State().Pending
	return matchCall(r.ID, pending, name)
}

func matchCall(run string, pending []event.ToolPendingApproval, name string) (string, error) {
	var ids, fits []string
	for _, p := range pending {
		ids = append(ids, p.CallID)
		switch {
		case p.CallID == name:
			return name, nil
		case strings.HasSuffix(p.CallID, "-"+name):
			fits = append(fits, p.CallID)
		}
	}
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(ids) == 0:
		return "", usagef("run %s waits for no decision", run)
	}
	return "", usagef("call %q of run %s waits for no decision; these do: %s", name, run, strings.Join(ids, ", "))
}
