package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/machine/agent"
)

type replayFlags struct {
	live   bool
	record string
	output
}

// check refuses what only goes with a run that is made.
func (f *replayFlags) check() error {
	switch {
	case f.live:
		return errors.Join(recordAnew(f.record), f.output.check())
	case f.record != "":
		return usagef("--record needs --live-model; without it no model says anything new")
	}
	return cmp.Or(f.output.check(), f.idle("needs --live-model; a replay without it makes no events"))
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay RUN",
		Short: "Run a run's loop again from what was recorded, and say what differs",
		Long: `Runs the loop of RUN again with the recorded answers of its models and the recorded results of its
tools: no network, no effect. Every decision, and every request byte for byte, is held against the
journal. With --live-model the run's real models are called in a new run, its tools answer from the
record, questions are decided as they were, and messages that came while it went come again in the same cycles; 'pawl runs diff'
then shows where the two part. Limits that were raised hold from the start. A replay that stops half way is made anew, not resumed.`,
		Example: `  pawl runs replay k7x2
  pawl runs replay k7x2 --json
  pawl runs replay k7x2 --live-model
  pawl runs replay k7x2 --live-model --record today.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			mode := toRead
			if f.live {
				mode = toWrite
			}
			return a.withRun(c.Context(), mode, args[0], func(s *session, r journal.Run) error {
				if f.live {
					return s.replayLive(c.Context(), r, f)
				}
				return s.replay(c.Context(), r, f.json)
			})
		},
	}
	c.Flags().BoolVar(&f.live, "live-model", false, "call the run's real models, with the recorded results of its tools")
	recordFlag(c, &f.record)
	f.output.flagsUnless(c, "without --live-model")
	return c
}

// launchedAs is a run's first event with what forks changed since.
func (s *session) launchedAs(ctx context.Context, r journal.Run) (event.RunStarted, error) {
	b, err := s.engine.Branch(ctx, r.ID, r.Seq)
	if err != nil {
		return event.RunStarted{}, err
	}
	return b.Started, nil
}

func (s *session) replay(ctx context.Context, r journal.Run, asJSON bool) error {
	started, err := s.launchedAs(ctx, r)
	if err != nil {
		return err
	}
	config, err := s.app.config()
	if err != nil {
		return err
	}
	found, err := s.engine.Replay(ctx, r.ID, launch.Wires(started, launch.Options{Config: config, Replay: (&replays{app: s.app}).open}))
	if err != nil {
		return err
	}
	if asJSON {
		err = s.app.printJSON(found)
	} else {
		err = s.app.printReplayed(found)
	}
	if err == nil && len(found.Divergences) > 0 {
		return withCode(exitFailed)
	}
	return err
}

func (a *app) printReplayed(found engine.Replayed) error {
	verdict := "the same"
	if n := len(found.Divergences); n > 0 {
		verdict = "NOT the same, " + plural(n, "divergence")
	}
	if err := a.printf("%s: %s: %s, %s and %s made again, %d compared byte for byte\n", found.Run, verdict,
		plural(int(found.Events), "event"), plural(found.Decisions, "decision"), plural(found.Requests, "request"), found.Compared); err != nil {
		return err
	}
	for _, d := range found.Divergences {
		if err := a.printf("  %s\n", harmless(clip(d.String(), 1000))); err != nil {
			return err
		}
	}
	return nil
}

// launchedForReplay is launchedAs for a run whose questions are answered beforehand:
// the raises that the run was given hold from the start, and none of its calls parks it.
func (s *session) launchedForReplay(ctx context.Context, r journal.Run) (event.RunStarted, error) {
	b, err := s.engine.Branch(ctx, r.ID, r.Seq)
	if err != nil {
		return event.RunStarted{}, err
	}
	m, ok := b.Machine.(*agent.Machine)
	if !ok {
		return b.Started, nil
	}
	cfg := m.Config()
	if cfg.Approve == agent.ApprovePark {
		cfg.Approve = agent.ApproveAsk
	}
	if b.Started.Config, err = json.Marshal(cfg); err != nil {
		return event.RunStarted{}, fmt.Errorf("encode the settings of run %s: %w", r.ID, err)
	}
	return b.Started, nil
}

// replayLive makes a new run of the same start, whose tools only answer from
// the record.
func (s *session) replayLive(ctx context.Context, r journal.Run, f replayFlags) error {
	started, err := s.launchedForReplay(ctx, r)
	if err != nil {
		return err
	}
	config, err := s.app.config()
	if err != nil {
		return err
	}
	machine, err := s.app.sandbox(ctx)
	if err != nil {
		return err
	}
	replayed := &replays{app: s.app}
	// No command runs, so a weaker sandbox than the run's does.
	elsewhere := started
	elsewhere.Sandbox = ""
	config.File = "" // nor is anything written
	env, err := launch.Environment(elsewhere, launch.Options{Config: config, Replay: replayed.open, Sandbox: machine, Limiter: &s.app.limiter})
	if err != nil {
		return err
	}
	if env.Tools, err = s.engine.RecordedTools(ctx, r.ID, env.Tools); err != nil {
		return errors.Join(err, closeEnv(env))
	}
	if env.Hooks, err = s.engine.RecordedHooks(ctx, r.ID, env.Hooks); err != nil {
		return errors.Join(err, closeEnv(env))
	}
	if env.Inputs, err = s.engine.RecordedInputs(ctx, r.ID); err != nil {
		return errors.Join(err, closeEnv(env))
	}
	if env.Ask, err = s.engine.RecordedDecisions(ctx, r.ID); err != nil {
		return errors.Join(err, closeEnv(env))
	}
	env.AskInTurn = true
	env.Tree = nil // nothing is changed, whatever the recorded calls changed
	env = recording(env, f.record, config)
	ctx, stop := interruptible(ctx)
	defer stop()
	p := newPrinter(s.app.err, screenOf(s.app.err, os.Getenv))
	started.Replays = r.ID
	run, err := s.engine.Start(ctx, started, env)
	if err != nil {
		return errors.Join(err, closeEnv(env))
	}
	err = replayed.verdict(s.app.follow(run, s.app.view(f.output, p), f.output.live()))
	fmt.Fprintf(s.app.err, "tools answered from the record of %s; compare with: %s runs diff %s %s\n", r.ID, s.app.invocation(), r.ID, run.ID)
	return err
}
