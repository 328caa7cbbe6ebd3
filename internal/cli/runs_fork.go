package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
)

// forkFlags are where to fork a run, and what changes from there on.
type forkFlags struct {
	seq     int64
	cycle   int
	model   string
	prompt  string
	window  int
	results []string
	message string
	limits  []string
	noRun   bool
	dryRun  bool
	approve string
	output
}

// forked is the output for a fork that is only created.
type forked struct {
	Run       string   `json:"run"`
	From      string   `json:"from"`
	Seq       int64    `json:"seq"`
	Requested int64    `json:"requested"`
	Changed   []string `json:"changed"`
}

func (a *app) forkCommand() *cobra.Command {
	var f forkFlags
	c := &cobra.Command{
		Use:   "fork RUN --seq N",
		Short: "Start a new run from event N of a run",
		Long: `Starts a new run that shares the journal of RUN up to event N, or up to the end of cycle N, and continues
from there, optionally with another model, system prompt, context window, limit or result of a call, or
with a message. N is rounded down to an event where no call was open. The spend of RUN does not count
against the fork. Files are not rewound: the tools see them as they are now. What RUN did after event N,
files, commands and what was sent, stays done: the fork lists it, and --dry-run lists it without a fork.
--record writes the model answers from there on.

A fork before a history.compressed event has the whole conversation again, if --context-window or
--model gives it enough room.`,
		Example: `  pawl runs fork k7x2 --seq 40
  pawl runs fork k7x2 --cycle 3 --model anthropic/claude-opus-4-5
  pawl runs fork k7x2 --seq 210 --context-window 200000
  pawl runs fork k7x2 --seq 40 --result 3-1=corrected.txt
  pawl runs fork k7x2 --cycle 3 --message "Leave the tests alone"
  pawl runs fork k7x2 --seq 40 --dry-run
  pawl runs fork k7x2 --seq 40 --record again.yaml
  pawl runs fork k7x2 --seq 40 --no-run --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(f.check(c), recordAnew(a.recordPath)); err != nil {
				return err
			}
			if f.noRun && a.recordPath != "" {
				return usagef("--record goes with a run, and --no-run makes none; give it to 'pawl runs resume'")
			}
			return a.withRun(c.Context(), toWrite, args[0], func(s *session, r journal.Run) error {
				if f.approve == string(agent.ApproveAll) {
					if err := s.decidedByPerson(c.Context()); err != nil {
						return err
					}
				}
				return s.fork(c.Context(), r, &f, c.Flags().Changed("approve"))
			})
		},
	}
	fl := c.Flags()
	fl.Int64Var(&f.seq, "seq", 0, "the last event to share; 'pawl runs events RUN' numbers them")
	fl.IntVar(&f.cycle, "cycle", 0, "the last cycle to share; 'pawl runs log RUN' numbers them")
	c.MarkFlagsMutuallyExclusive("seq", "cycle")
	fl.StringVarP(&f.model, "model", "m", "", "continue with this model")
	fl.StringVar(&f.prompt, "prompt", "", "continue with this system prompt")
	fl.IntVar(&f.window, "context-window", 0, "continue with this context window in tokens, at most the model's own")
	fl.StringArrayVar(&f.results, "result", nil, "put a file's content in the place of a call's result, as CALL=FILE; CALL may be the end of its id (3-1)")
	fl.StringVar(&f.message, "message", "", "continue with this message")
	fl.StringArrayVar(&f.limits, "limit", nil, "continue with another limit, as SETTING=VALUE or SETTING=none (may be repeated)")
	fl.BoolVar(&f.dryRun, "dry-run", false, "create nothing; list what RUN did after the event, which a fork does not undo")
	fl.BoolVar(&f.noRun, "no-run", false, "only create the fork; 'pawl runs resume' runs it")
	approveFlag(c, &f.approve)
	recordFlag(c, &a.recordPath)
	f.output.flagsUnless(c, "with --no-run")
	return c
}

func (f *forkFlags) check(c *cobra.Command) error {
	switch {
	case !c.Flags().Changed("seq") && !c.Flags().Changed("cycle"):
		return usagef("--seq is missing: the number of the last event to share; 'pawl runs events RUN' numbers them, and --cycle takes a cycle")
	case c.Flags().Changed("cycle") && f.cycle < 1:
		return usagef("--cycle is %d; it must be 1 or more", f.cycle)
	case c.Flags().Changed("message") && strings.TrimSpace(f.message) == "":
		return usagef("--message is empty")
	case f.model != "" && !strings.Contains(f.model, "/"):
		return usagef("--model is %q; it must be provider/model", f.model)
	case c.Flags().Changed("prompt") && strings.TrimSpace(f.prompt) == "":
		return usagef("--prompt is empty")
	case c.Flags().Changed("context-window") && f.window < 1:
		return usagef("--context-window is %d; it must be a number of tokens", f.window)
	}
	if _, err := approveMode(f.approve); err != nil {
		return err
	}
	if err := cmp.Or(textual("--model", f.model), textual("--prompt", f.prompt), textual("--message", f.message), f.output.check()); err != nil || !f.noRun {
		return err
	}
	if c.Flags().Changed("approve") {
		return usagef("--approve goes with a run, and --no-run makes none; give it to 'pawl runs resume'")
	}
	return f.idle("goes with a run, and --no-run makes none")
}

// replaced reads the files of --result.
func (f *forkFlags) replaced() ([]event.ForkedResult, error) {
	var out []event.ForkedResult
	for _, pair := range f.results {
		call, path, ok := strings.Cut(pair, "=")
		if !ok || call == "" || path == "" {
			return nil, usagef("--result is %q; it must be CALL=FILE", pair)
		}
		b, err := readFileBounded(path)
		if err != nil {
			return nil, usagef("--result %s: %w", call, err)
		}
		if err := textual("--result "+call+": "+onOneLine(path), string(b)); err != nil {
			return nil, err
		}
		out = append(out, event.ForkedResult{CallID: call, Output: string(b)})
	}
	return out, nil
}

// endOf returns the number of the last event of a cycle.
func (s *session) endOf(ctx context.Context, r journal.Run, cycle int) (int64, error) {
	var end int64
	cycles := 0
	for read, err := range drive.Events(ctx, s.store, r.ID, 0) {
		if err != nil {
			return 0, failure(err)
		}
		if cycles = max(cycles, read.Event.Cycle); read.Event.Cycle == cycle {
			end = read.Event.Seq
		}
	}
	if end == 0 {
		return 0, usagef("--cycle is %d; run %s has %s", cycle, r.ID, plural(cycles, "cycle"))
	}
	return end, nil
}

func (s *session) fork(ctx context.Context, r journal.Run, f *forkFlags, approveSaid bool) error {
	if f.cycle > 0 {
		end, err := s.endOf(ctx, r, f.cycle)
		if err != nil {
			return err
		}
		f.seq = end
	}
	if f.dryRun {
		return s.showEffects(ctx, r, f)
	}
	commands, err := f.commands()
	if err != nil {
		return err
	}
	results, err := f.replaced()
	if err != nil {
		return err
	}
	if err := s.nameResults(ctx, r, f.seq, results); err != nil {
		return err
	}
	made, err := s.makeFork(ctx, r, f, results)
	if err != nil {
		return err
	}
	left, err := s.engine.Past().EffectsAfter(ctx, r.ID, made.Seq)
	if err != nil {
		return err
	}
	note := fmt.Sprintf("run %s shares %s up to event %d", made.Run, made.From, made.Seq)
	if made.Seq != made.Requested {
		note += fmt.Sprintf(", the last before %d at which no call was open", made.Requested)
	}
	fmt.Fprintf(s.app.err, "%s\nfiles are not rewound: tools see them as they are now\n", note)
	if len(left) > 0 {
		fmt.Fprintf(s.app.err, "what run %s did after event %d stays done:\n%s", r.ID, made.Seq, effectLines(left))
	}
	if err := s.sendToFork(ctx, made.Run, commands); err != nil {
		return err
	}
	if !f.noRun {
		row, err := s.store.Run(ctx, made.Run)
		if err != nil {
			return err
		}
		err = s.resume(ctx, row, f.output, approving{f.approve, approveSaid})
		return halfway(fmt.Sprintf("run %s was created", made.Run), err)
	}
	if f.json {
		return s.app.printJSON(made)
	}
	return s.app.printf("%s\n", made.Run)
}

func (s *session) makeFork(ctx context.Context, r journal.Run, f *forkFlags, results []event.ForkedResult) (forked, error) {
	b, err := s.engine.Branch(ctx, r.ID, f.seq)
	if errors.Is(err, drive.ErrNoSuchEvent) {
		return forked{}, usagef("run %s has no event %d; it has 1 to %d", r.ID, f.seq, r.Seq)
	}
	if err != nil {
		return forked{}, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return forked{}, err
	}
	config, err := s.app.config()
	if err != nil {
		return forked{}, err
	}
	prompt := f.prompt
	said := []*string{&prompt}
	for i := range results {
		said = append(said, &results[i].Output)
	}
	if err := s.controller.Redact(ctx, r.ID, said...); err != nil {
		return forked{}, usageError(err)
	}
	models := launch.Options{Flags: launch.Flags{Dir: dir}, Host: launch.Host{Config: config, Replay: (&replays{app: s.app}).open}}
	change, warnings, err := kinds.Fork(b, launch.ForkChanges{Model: f.model, Prompt: prompt, Window: f.window, Results: results}, models)
	if err != nil {
		return forked{}, usageError(err)
	}
	change.Principal = itsUser()
	id, err := s.engine.Fork(ctx, b, change)
	if err != nil {
		return forked{}, err
	}
	for _, w := range warnings {
		fmt.Fprintf(s.app.err, "warning: %s\n", firstLine(w, 300))
	}
	made := forked{Run: id, From: b.Run, Seq: b.Seq, Requested: b.Requested, Changed: append([]string{}, change.Changed...)}
	for _, res := range change.Results {
		made.Changed = append(made.Changed, "result of "+res.CallID)
	}
	return made, nil
}
