package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
)

type replayFlags struct {
	live   bool
	record string
	output
}

// check rejects flags that only apply to a new run.
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
		Short: "Replay a run from its journal and report differences",
		Long: `Repeats the loop of RUN with the recorded model answers and tool results, without network and without
side effects. Every decision and every request, byte for byte, is compared with the journal.

With --live-model a new run calls the real models. Its tools answer from the record, approvals are
decided as before, and messages arrive in the same cycles; 'pawl runs diff' shows where the two runs
differ. Raised limits apply from the start. An interrupted replay cannot be resumed; start it again.`,
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

func (s *session) replay(ctx context.Context, r journal.Run, asJSON bool) error {
	config, err := s.app.config()
	if err != nil {
		return err
	}
	found, err := s.controller.Replay(ctx, r.ID, launch.Options{Host: launch.Host{Config: config, Replay: (&replays{app: s.app}).open}})
	if err != nil {
		return err
	}
	err = s.app.show(asJSON, found, func() error { return s.app.printReplayed(found) })
	if err == nil && found.Differs() > 0 {
		return withCode(exitFailed)
	}
	return err
}

func (a *app) printReplayed(found control.Replayed) error {
	verdict, sum := "the same", found.Replayed
	for _, below := range found.Below {
		sum.Events += below.Events
		sum.Decisions += below.Decisions
		sum.Requests += below.Requests
		sum.Compared += below.Compared
	}
	if n := found.Differs(); n > 0 {
		verdict = "replay does NOT match, " + plural(n, "divergence")
	}
	if err := a.printf("%s: %s: %s, %s and %s made again, %d compared byte for byte%s\n", found.Run, verdict,
		plural(int(sum.Events), "event"), plural(sum.Decisions, "decision"), plural(sum.Requests, "request"), sum.Compared, alsoBelow(len(found.Below))); err != nil {
		return err
	}
	for i, run := range append([]replay.Replayed{found.Replayed}, found.Below...) {
		of := ""
		if i > 0 {
			of = run.Run + ": "
		}
		for _, d := range run.Divergences {
			if err := a.printf("  %s%s\n", of, harmless(clip(d.String(), 1000))); err != nil {
				return err
			}
		}
	}
	return nil
}

// launchedForReplay is [control.Controller.StartOf] for a run whose questions are answered in
// advance: raised limits apply from the start, and no call parks the run.
func (s *session) launchedForReplay(ctx context.Context, r journal.Run) (event.RunStarted, error) {
	b, err := s.engine.Branch(ctx, r.ID, r.Seq)
	if err != nil {
		return event.RunStarted{}, err
	}
	m, ok := b.Machine.(agent.Configured)
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

// replayLive creates a new run with the same start, whose tools answer only from
// the record.
func (s *session) replayLive(ctx context.Context, r journal.Run, f replayFlags) error {
	started, err := s.launchedForReplay(ctx, r)
	if err != nil {
		return err
	}
	host, replayed, err := s.app.host(ctx)
	if err != nil {
		return err
	}
	config := host.Config
	// No command runs, so a weaker sandbox than the run's is enough.
	elsewhere := started
	elsewhere.Sandbox, elsewhere.Place = "", event.Place{}
	host.Config.File, host.Journal = "", "" // and the replay writes nothing
	env, err := kinds.Resume(elsewhere, launch.Options{Host: host})
	if err != nil {
		return err
	}
	if env.Tools, err = replay.Tools(ctx, s.engine.Past(), r.ID, env.Tools); err != nil {
		return errors.Join(err, closeEnv(env))
	}
	if env.Hooks, err = replay.Hooks(ctx, s.engine.Past(), r.ID, env.Hooks); err != nil {
		return errors.Join(err, closeEnv(env))
	}
	if env.Inputs, err = replay.Inputs(ctx, s.engine.Past(), r.ID); err != nil {
		return errors.Join(err, closeEnv(env))
	}
	if env.Ask, err = replay.Decisions(ctx, s.engine.Past(), r.ID); err != nil {
		return errors.Join(err, closeEnv(env))
	}
	env.AskInTurn = true
	env.Tree = nil // the replay changes no files, so the tree has no state
	env = s.app.recording(env, f.record, config)
	ctx, stop := interruptible(ctx)
	defer stop()
	p := newPrinter(s.app.err, screenOf(s.app.err, os.Getenv))
	started.Replays = r.ID
	started.Principal = itsUser()
	run, err := s.engine.Start(ctx, started, env)
	if err != nil {
		return errors.Join(err, closeEnv(env))
	}
	err = replayed.verdict(s.app.follow(run, s.app.view(f.output, p), f.output))
	fmt.Fprintf(s.app.err, "tools answered from the record of %s; compare with: %s runs diff %s %s\n", r.ID, s.app.invocation(), r.ID, run.ID)
	return err
}
