package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/login"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
)

func (a *app) resumeCommand() *cobra.Command {
	var o output
	var approve string
	c := &cobra.Command{
		Use:        "resume RUN",
		SuggestFor: []string{"continue"},
		Short:      "Resume a paused run",
		Long: `Resumes a run that is parked, paused, or whose process has died. Finished calls are not repeated. A call
that was running when the process died runs again only if that is safe. A call that waits for a login at an MCP
server is made if you have logged in since. --record continues a recording.
--json and --view print the run from its first event.`,
		Example: "  pawl runs resume k7x2\n  pawl runs resume k7x2 --approve deny --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				if approve == string(agent.ApproveAll) {
					if err := s.decidedByPerson(c.Context()); err != nil {
						return err
					}
				}
				r, err := s.loggedIn(c.Context(), r)
				if err != nil {
					return err
				}
				return s.resume(c.Context(), r, o, approving{approve, c.Flags().Changed("approve")})
			})
		},
	}
	approveFlag(c, &approve)
	recordFlag(c, &a.recordPath)
	o.flagsUnless(c, "")
	return c
}

// loggedIn answers the questions of a run that waits for a login, if one was made since
// the run parked. It returns the run with the answers.
func (s *session) loggedIn(ctx context.Context, r journal.Run) (journal.Run, error) {
	dir, err := login.Dir()
	if err != nil || r.State != journal.Parked || !login.Since(dir, r.Updated) || s.decidedByPerson(ctx) != nil {
		return r, nil
	}
	pending, err := s.controller.Pending(ctx, r.ID)
	if err != nil {
		return r, err
	}
	for _, p := range pending {
		if form, is := p.What.(event.FormAsked); !is || form.Command == "" {
			continue
		}
		answer, err := s.answerTo(ctx, p, nil)
		if err != nil {
			return r, err
		}
		if _, err := s.send(ctx, r, journal.Command{Kind: journal.Approve, CallID: p.ID, Args: answer}); err != nil {
			return r, err
		}
	}
	return s.store.Run(ctx, r.ID)
}

// approving is the approver of gated calls from here on.
type approving struct {
	mode string
	// given reports that the user set the flag instead of leaving the default.
	given bool
}

// fits rejects a flag without effect: a run that was started with a fixed answer to
// every approval keeps it.
func (a approving) fits(run string, config json.RawMessage) error {
	var pinned agent.Config
	if err := json.Unmarshal(config, &pinned); err != nil {
		return fmt.Errorf("read the settings of run %s: %w", run, err)
	}
	switch {
	case !a.given || string(pinned.Approve) == a.mode:
		return nil
	case pinned.Approve == agent.ApproveAll, pinned.Approve == agent.ApproveDeny:
		return usagef("run %s was started with --approve %s and keeps it; start a new run from it with --continue to change that", run, pinned.Approve)
	case pinned.Approve == agent.ApprovePark, pinned.Approve == agent.ApproveBypass:
		return usagef("run %s has approvals.mode: %s and keeps it; decide with 'pawl runs approve' or 'reject'", run, pinned.Approve)
	}
	return nil
}

// resume resumes a run and shows its events.
func (s *session) resume(ctx context.Context, row journal.Run, o output, who approving) error {
	mode, err := approveMode(who.mode)
	if err != nil {
		return err
	}
	host, replayed, err := s.app.host(ctx)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	p := newPrinter(s.app.err, screenOf(s.app.err, os.Getenv))
	o.after = row.Seq
	v := s.app.view(o, p)
	host.Dress = s.asking(mode, p)
	r, err := s.engine.Resume(ctx, row.ID, func(started event.RunStarted) (perform.Env, error) {
		if err := who.fits(row.ID, started.Config); err != nil {
			return perform.Env{}, err
		}
		env, err := kinds.Resume(started, launch.Options{Host: host})
		if err != nil { // nothing has happened, as when a run does not start
			return env, usageError(err)
		}
		host.Dress(&env)
		return s.app.recording(env, s.app.recordPath, host.Config), nil
	})
	if child, ok := errors.AsType[*engine.ChildError](err); ok {
		return usageError(child)
	}
	if errors.Is(err, engine.ErrReplay) {
		return usageError(err)
	}
	if err != nil {
		return err
	}
	return replayed.verdict(s.app.follow(r, v, o))
}
