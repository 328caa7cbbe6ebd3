package main

import (
	"context"
	"os"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/launch"
	"github.com/spf13/cobra"
)

func (a *app) resumeCommand() *cobra.Command {
	var o output
	var approve string
	c := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run that parked or whose process is gone",
		Long: `Goes on with a run. What was settled is not repeated; a call that was running when its process
died runs again only if that cannot do harm. --json and --view print the run from its first event.`,
		Example: "  pawl runs resume k7x2\n  pawl runs resume k7x2 --approve deny --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				return s.resume(c.Context(), r, o, approve)
			})
		},
	}
	approveFlag(c, &approve)
	o.flags(c)
	return c
}

// resume drives a run from where it stands and shows what comes.
func (s *session) resume(ctx context.Context, row journal.Run, o output, approve string) error {
	mode, err := approveMode(approve)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	p := newPrinter(s.app.err, screenOf(s.app.err, os.Getenv))
	r, err := s.engine.Resume(ctx, row.ID, func(started event.RunStarted) (engine.Env, error) {
		env, err := launch.Environment(started)
		env.Ask = s.app.asking(mode, p)
		return env, err
	})
	if err != nil {
		return err
	}
	o.after = row.Seq
	return s.app.follow(r, s.app.view(o, p), o.live())
}
