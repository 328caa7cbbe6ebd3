package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
)

// retryFlags are how a retry runs.
type retryFlags struct {
	step    string
	noRun   bool
	approve string
	output
}

// retry is the output for a retry that is only created.
type retry struct {
	Run   string   `json:"run"`
	From  string   `json:"from"`
	Seq   int64    `json:"seq"`
	Steps []string `json:"steps"`
}

func (a *app) retryCommand() *cobra.Command {
	var f retryFlags
	c := &cobra.Command{
		Use:   "retry RUN",
		Short: "Start an ended workflow again from the steps that failed, or from one step",
		Long: `Starts a new run of an ended workflow, team or loop. It keeps what completed: steps, items of a forEach and
iterations of a loop are not run again, with the conditions, judges and reviews in between. Steps that
failed or were cancelled start again, with all their attempts, and then what depends on them. A loop that
failed although its last iteration completed, because of its cap or its judge, starts again at its first
iteration. --step names the step to do again instead, with what depends on it, also of a workflow that
completed. The new run is a fork of RUN, and the spend of RUN does not count against it. Files are not
rewound, and the run has the file that RUN was started with: change that and start a new run to change a step.`,
		Example: "  pawl runs retry k7x2\n  pawl runs retry k7x2 --step deploy\n  pawl runs retry k7x2 --no-run --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(f.check(c)); err != nil {
				return err
			}
			return a.withRun(c.Context(), toWrite, args[0], func(s *session, r journal.Run) error {
				if f.approve == string(agent.ApproveAll) {
					if err := s.decidedByPerson(c.Context()); err != nil {
						return err
					}
				}
				return s.retry(c.Context(), r, &f, c.Flags().Changed("approve"))
			})
		},
	}
	c.Flags().StringVar(&f.step, "step", "", "do the step with this `ID` again, with what depends on it; 'pawl runs log RUN' names the steps")
	c.Flags().BoolVar(&f.noRun, "no-run", false, "only create the run; 'pawl runs resume' runs it")
	approveFlag(c, &f.approve)
	f.output.flagsUnless(c, "with --no-run")
	return c
}

func (f *retryFlags) check(c *cobra.Command) error {
	if _, err := approveMode(f.approve); err != nil {
		return err
	}
	if err := f.output.check(); err != nil || !f.noRun {
		return err
	}
	if c.Flags().Changed("approve") {
		return usagef("--approve goes with a run, and --no-run makes none; give it to 'pawl runs resume'")
	}
	return f.idle("goes with a run, and --no-run makes none")
}

func (s *session) retry(ctx context.Context, r journal.Run, f *retryFlags, approveSaid bool) error {
	b, steps, err := launch.Retry(ctx, s.engine, s.store, r, f.step)
	if errors.Is(err, launch.ErrNoRetry) {
		return usageError(err)
	}
	if err != nil {
		return err
	}
	id, err := s.engine.Fork(ctx, b, event.RunForked{Principal: itsUser()})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.app.err, "run %s retries %s of %s; what completed is kept, files are not rewound\n", id, strings.Join(steps, ", "), r.ID)
	if !f.noRun {
		row, err := s.store.Run(ctx, id)
		if err != nil {
			return err
		}
		err = s.resume(ctx, row, f.output, approving{f.approve, approveSaid})
		return halfway(fmt.Sprintf("run %s was created", id), err)
	}
	if f.json {
		return s.app.printJSON(retry{Run: id, From: r.ID, Seq: b.Seq, Steps: steps})
	}
	return s.app.printf("%s\n", id)
}
