package evaluation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/suite"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// Targets are the files of a suite's cases, ready to run, by [targetKey].
type Targets map[string]target

// target is a file that cases run. digest changes with everything that a run of it pins.
type target struct {
	file   kinds.File
	digest string
}

// ReadTargets reads the files of the cases and prepares one run of each, which does not
// start. It finds what would prevent the runs before the first of them costs anything.
func (e *Evaluation) ReadTargets() (Targets, error) {
	// The path is among what is compared when an evaluation continues. The directory stays,
	// because another process may check the same suite.
	path, err := filepath.Abs(e.Suite.File)
	if err != nil {
		return nil, fmt.Errorf("evaluation: %w", err)
	}
	workspace := filepath.Join(e.Dir, "check-"+digestOf(path)[:12])
	if err := os.MkdirAll(workspace, 0o700); err != nil {
		return nil, fmt.Errorf("evaluation: %w", err)
	}
	all := Targets{}
	for i := range e.Suite.Cases {
		c := &e.Suite.Cases[i]
		key := e.targetKey(c)
		if _, known := all[key]; known || c.Recorded != "" {
			continue
		}
		of := e.Suite.Of(c)
		file, err := kinds.Read(e.Suite.Path(of.File()))
		if err != nil {
			return nil, err
		}
		started, env, err := file.Launch("x", e.optionsOf(c, workspace))
		if err != nil {
			return nil, fmt.Errorf("case %s: %w", c.Name, err)
		}
		if err := closed(env); err != nil {
			return nil, err
		}
		started.Input, started.Warnings = nil, nil
		pins, err := json.Marshal(started)
		if err != nil {
			return nil, fmt.Errorf("evaluation: %w", err)
		}
		all[key] = target{file, digestOf(string(pins))}
	}
	return all, nil
}

// targetKey identifies the target of a case in a suite.
func (e *Evaluation) targetKey(c *suite.Case) string {
	of := e.Suite.Of(c)
	return digestOf(of.File(), of.Model, fmt.Sprint(c.Vars))
}

// optionsOf returns the options of a run of a case.
func (e *Evaluation) optionsOf(c *suite.Case, workspace string) launch.Options {
	o := e.Options
	o.Workspace, o.Vars = workspace, c.Vars
	if o.Model == "" {
		o.Model, o.Dir = e.Suite.Of(c).Model, e.Suite.Dir()
	}
	return o
}

// trial is one run of a case, or one recorded run.
type trial struct {
	c *suite.Case
	// of is what runs; its zero value is a recorded run.
	of  target
	run string
	// judges are the runs that answer for the evaluators, by their index; "" for an
	// evaluator without one.
	judges []string
}

// trials returns the runs of the evaluation, in the order of the cases.
func (e *Evaluation) trials(targets Targets) []trial {
	var all []trial
	for i := range e.Suite.Cases {
		c := &e.Suite.Cases[i]
		of := targets[e.targetKey(c)]
		for attempt := range e.Suite.Times(c) {
			t := trial{c: c, of: of, run: c.Recorded}
			if c.Recorded == "" {
				t.run = runID(e.token, c.Name, c.Input, of.digest, e.filesDigest(c), fmt.Sprint(attempt))
			}
			for _, each := range e.Suite.EvaluatorsOf(c) {
				t.judges = append(t.judges, e.judgeID(t.run, each))
			}
			all = append(all, t)
		}
	}
	return all
}

// filesDigest changes with the files of a case. A file that cannot be read is reported
// when the case runs.
func (e *Evaluation) filesDigest(c *suite.Case) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c.Files.Texts)) {
		parts = append(parts, name, c.Files.Texts[name])
	}
	if c.Files.Dir != "" {
		root := e.Suite.Path(c.Files.Dir)
		_ = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				text, _ := os.ReadFile(path)
				parts = append(parts, path, string(text))
			}
			return nil
		})
	}
	return digestOf(parts...)
}

func digestOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d %s\n", len(p), p)
	}
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)))
}

// runID returns the id of a run, in the form of all others: 12 letters and digits, the
// first a letter.
func runID(parts ...string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	d := digestOf(parts...)
	return string(letters[int(d[0])%len(letters)]) + d[1:12]
}

// try decides a trial. It returns nil if the evaluation was stopped before.
func (e *Evaluation) try(ctx context.Context, t *trial) (*Trial, error) {
	row, err := e.ended(ctx, t)
	if err != nil || stopped(ctx, row) {
		return nil, err
	}
	out, x, err := e.read(ctx, row)
	if err != nil {
		return nil, err
	}
	out.Pass = row.State == journal.Ended && (out.OK || t.c.MayFail)
	if row.State != journal.Ended {
		out.Problem = "it waits and cannot go on: " + cmp.Or(row.Detail, string(row.State))
		return out, nil
	}
	for i, each := range e.Suite.EvaluatorsOf(t.c) {
		v, err := e.judge(ctx, t, i, each, x, out.USD)
		if err != nil || v == nil {
			return nil, err
		}
		out.Verdicts = append(out.Verdicts, *v)
		out.Pass = out.Pass && v.Pass
		out.JudgeUSD += v.USD
	}
	if out.Pass && t.c.Recorded == "" {
		_ = os.RemoveAll(e.workspace(t.run)) // the journal has what the run did
	}
	return out, nil
}

// ended returns the row of a trial's run after it has ended or parked.
func (e *Evaluation) ended(ctx context.Context, t *trial) (journal.Run, error) {
	if t.c.Recorded != "" {
		row, err := e.Find(ctx, t.c.Recorded)
		if err == nil && row.State != journal.Ended {
			err = fmt.Errorf("case %s: the recorded run %s has not ended", t.c.Name, row.ID)
		}
		return row, err
	}
	return e.drive(ctx, t.run, func() (event.RunStarted, perform.Env, error) {
		workspace := e.workspace(t.run)
		if err := e.lay(t.c, workspace); err != nil {
			return event.RunStarted{}, perform.Env{}, err
		}
		started, env, err := t.of.file.Launch(t.c.Input, e.optionsOf(t.c, workspace))
		if err != nil {
			err = fmt.Errorf("case %s: %w", t.c.Name, err)
		}
		return started, env, err
	})
}

// drive starts or resumes a run, and waits until it has ended or parked. A run that
// waits for a decision is left as it is.
func (e *Evaluation) drive(ctx context.Context, id string, begin func() (event.RunStarted, perform.Env, error)) (journal.Run, error) {
	row, err := e.Store.Run(ctx, id)
	var r drive.Run
	switch {
	case errors.Is(err, journal.ErrNotFound):
		started, env, err := begin()
		if err != nil {
			return row, err
		}
		started.Principal = e.Principal
		if r, err = e.Engine.StartAs(ctx, id, started, env); err != nil {
			return row, errors.Join(err, closed(env))
		}
	case err != nil:
		return row, err
	case row.State == journal.Ended, row.State == journal.Parked && row.Detail != string(event.ParkInterrupted):
		return row, nil
	default:
		r, err = e.Engine.Resume(ctx, id, func(started event.RunStarted) (perform.Env, error) {
			return kinds.Resume(started, launch.Options{Host: e.Options.Host})
		})
		if err != nil {
			return row, err
		}
	}
	whole := context.WithoutCancel(ctx)
	if _, err := r.Wait(whole); err != nil {
		return row, err
	}
	return e.Store.Run(whole, id)
}

// stopped reports whether a run parked because the evaluation was stopped.
func stopped(ctx context.Context, row journal.Run) bool {
	return ctx.Err() != nil && row.State != journal.Ended
}

// workspace returns the directory of a run's files, and for "" that of all.
func (e *Evaluation) workspace(run string) string { return filepath.Join(e.Dir, e.token, run) }

// lay creates the workspace of a run, and removes that of an earlier process.
func (e *Evaluation) lay(c *suite.Case, dir string) error {
	fail := func(err error) error { return fmt.Errorf("case %s: its files: %w", c.Name, err) }
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return fail(err)
	}
	if c.Files.Dir != "" {
		if err := os.CopyFS(dir, os.DirFS(e.Suite.Path(c.Files.Dir))); err != nil {
			return fail(err)
		}
	}
	for name, text := range c.Files.Texts {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fail(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fail(err)
		}
	}
	return nil
}

// spent returns what a run has cost, with the runs below it.
func (e *Evaluation) spent(ctx context.Context, r journal.Run) (llm.Cost, error) {
	var o event.Outcome
	if len(r.Outcome) > 0 {
		err := json.Unmarshal(r.Outcome, &o)
		return pointed(o.Cost), err
	}
	var v view.View
	for ev, err := range drive.AsStored(ctx, e.Store, r.ID, event.TypeRunForked, event.TypeModelResponse, event.TypeModelAttemptFailed, event.TypeBudgetCommitted) {
		if err != nil {
			return llm.Cost{}, err
		}
		v.Add(ev)
	}
	return pointed(v.Run().Cost), nil
}

func pointed(c *llm.Cost) llm.Cost {
	if c == nil {
		return llm.Cost{}
	}
	return *c
}

func closed(env perform.Env) error {
	if env.Close == nil {
		return nil
	}
	return env.Close()
}
