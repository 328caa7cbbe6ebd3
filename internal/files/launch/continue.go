package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
)

// Errors of [Continue].
var (
	// ErrNothingNew is returned when neither a message nor a raised limit
	// gives the new run anything to do.
	ErrNothingNew = errors.New("launch: nothing to continue with: give a new message, or raise a limit")
	// ErrMessageNeeded is an ErrNothingNew for a run with a raised limit whose last
	// message is the model's.
	ErrMessageNeeded = fmt.Errorf("%w: the last message is the model's, so a new message is needed", ErrNothingNew)
)

// Continue prepares a new run that starts from an ended one: the same prompt, tools
// and models, its conversation, and a new message or other limits. The ended run
// itself never changes. Unset options keep the ended run's values. The properties
// of the models, the content of the workspace and the warnings are current.
func Continue(ctx context.Context, store journal.Store, run, input string, o Options) (event.RunStarted, perform.Env, error) {
	fail := func(err error) (event.RunStarted, perform.Env, error) { return event.RunStarted{}, perform.Env{}, err }
	old, err := assembly.Load(ctx, store, run)
	if err != nil {
		return fail(err)
	}
	started := old.Started
	a, err := restore(started)
	if err != nil {
		return fail(err)
	}
	if err := recordable(o.Workspace); err != nil {
		return fail(err)
	}
	if err := o.moves(old, input); err != nil {
		return fail(err)
	}
	if o.Workspace != "" && o.Workspace != started.Workspace {
		started.Workspace, old.From.Files = o.Workspace, nil
	}
	cfg := old.Machine.Config()
	cfg.CompactNow = o.Compact
	targets, hosted, err := o.change(a, &cfg, &started)
	if err != nil {
		return fail(err)
	}
	o = o.pinned(started)
	resolver := o.resolver(a.Dir)
	if err := taken(modelsOf(cfg.Targets), filesOf(old.From.History), o.Attachments, resolver); err != nil {
		return fail(err)
	}
	// The protected files and the hooks are those of the workspace now.
	o.nested = nestedFor(a, started.Workspace, o.tree.builtin())
	cfg.Policy = o.permissions(a)
	if started.HookFiles, err = pinHooks(a, started.Workspace); err != nil {
		return fail(err)
	}
	if started.Commands, err = pinCommands(a, started.Workspace); err != nil {
		return fail(err)
	}
	if started.Config, err = json.Marshal(cfg); err != nil {
		return fail(fmt.Errorf("launch: encode config: %w", err))
	}
	started.Sandbox = ""
	env, confined, err := restored(started, o)
	if err != nil {
		return fail(err)
	}
	o.confined = confined
	if err := affordable(cfg); err != nil {
		return fail(assembly.Closing(env, err))
	}
	next, err := assembly.Start(cfg, env, event.InputReceived{Text: input, Media: o.Attachments}, started.Fence)
	if err != nil {
		return fail(assembly.Closing(env, err))
	}
	next.Name, next.Source, next.Spec, next.Workspace = started.Name, started.Source, started.Spec, started.Workspace
	next.Options, next.HookFiles, next.Commands = started.Options, started.HookFiles, started.Commands
	next.Servers, next.Instructions, next.Skills = started.Servers, started.Instructions, started.Skills
	next.Agents, next.MaxDepth = started.Agents, started.MaxDepth
	next.From = &old.From
	confined.pin(&next)
	// If the file can no longer be read, the old warnings stay.
	next.Warnings = slices.Concat(started.Warnings, hosted)
	if again, err := spec.ParseAgent(started.Source, []byte(started.Spec), o.Checks()); err == nil {
		a.Warnings, next.Warnings = again.Warnings, nil
		for i := range a.Warnings {
			a.Warnings[i].File, a.Warnings[i].Line = "", 0 // the file may have changed
		}
	}
	for _, w := range o.warnings(a, cfg, targets, env.Tools) {
		if !slices.Contains(next.Warnings, w) {
			next.Warnings = append(next.Warnings, w)
		}
	}
	return next, env, nil
}

// moves reports what is missing before a run that continues old has anything to do.
func (o Options) moves(old *assembly.Ended, input string) error {
	switch {
	case input != "" || len(o.Attachments) > 0, o.Unread && !old.Answered():
	case len(o.Limits) == 0 && !o.NoBudget && o.BudgetUSD == nil:
		return ErrNothingNew
	case old.Answered():
		return ErrMessageNeeded
	}
	return nil
}

func modelsOf(targets []agent.Target) []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Model
	}
	return names
}

// change replaces the ended run's values by the flags, and the old properties of
// its models by the current ones. a is nil for a run without a file. The warnings
// concern tools that the models' providers run.
func (o Options) change(a *spec.Agent, cfg *agent.Config, started *event.RunStarted) (found []target, warnings []string, err error) {
	cfg.DefaultCap = cappedByDefault(cfg, started)
	if err := o.replace(cfg); err != nil {
		return nil, nil, err
	}
	cfg.Approve = cmp.Or(o.Approve, cfg.Approve)
	cfg.NoStream = cfg.NoStream || o.NoStream
	changed, names := map[string]string{}, modelsOf(cfg.Targets)
	if o.Approve != "" {
		changed["approve"] = string(o.Approve)
	}
	if o.Model != "" {
		if err := recordable(spec.Absolute(o.Dir)); err != nil {
			return nil, nil, err
		}
		changed["dir"], changed["model"], names = spec.Absolute(o.Dir), o.Model, []string{o.Model}
	}
	*started = started.Forked(event.RunForked{Options: changed})
	resolver := o.pinned(*started).resolver(started.Options["files"])
	if o.Model != "" {
		if err := checkName(o.Model, resolver); err != nil {
			return nil, nil, fmt.Errorf("launch: %w", err)
		}
	}
	if found, err = targetsOf(names, resolver); err != nil {
		return nil, nil, err
	}
	if o.Model != "" {
		if warnings, err = runsHosted(cfg.ProviderTools, o.Model, resolver); err != nil {
			return nil, nil, err
		}
	}
	before := cfg.Targets
	cfg.Targets = nil
	for _, t := range found {
		if i := slices.IndexFunc(before, func(b agent.Target) bool { return b.Model == t.Model }); i >= 0 {
			t.Price, t.ContextWindow = cmp.Or(t.Price, before[i].Price), cmp.Or(t.ContextWindow, before[i].ContextWindow)
		}
		cfg.Targets = append(cfg.Targets, t.Target)
	}
	if a != nil {
		cfg.MaxTokens = maxTokens(a, found)
	}
	return found, warnings, nil
}

// ForkChanges lists how a fork differs from the run that it forks.
type ForkChanges struct {
	// Model replaces every model, Prompt the system prompt; "" keeps them.
	Model  string
	Prompt string
	// Window replaces the context window, in tokens; 0 keeps it. It gives room to a
	// conversation that was compacted after the point of the fork.
	Window int
	// Results replace the results of calls.
	Results []event.ForkedResult
}

// Fork prepares what a fork changes. The changes are recorded in full, so folding
// the fork needs only the journal. The options are used only to find models. The
// warnings concern the new values.
func Fork(b *drive.Branch, c ForkChanges, o Options) (forked event.RunForked, warnings []string, err error) {
	for _, r := range c.Results {
		if err := b.CheckResult(r.CallID); err != nil {
			return forked, nil, fmt.Errorf("launch: fork: %w", err)
		}
	}
	forked.Results = c.Results
	m, ok := b.Machine.(agent.Configured)
	if !ok {
		return forked, nil, errors.New("launch: fork: the run is not an agent's")
	}
	cfg, started := m.Config(), b.Started
	if c.Model != "" {
		changed := Options{Flags: Flags{Model: c.Model, Dir: o.Dir}, Host: o.Host}
		if warnings, err = changed.swap(&cfg, &started); err != nil {
			return forked, nil, err
		}
		files := filesOf(slices.Concat(m.Transcript(), m.Unread()))
		if err := readable([]string{c.Model}, files, o.resolver(started.Options["files"])); err != nil {
			return forked, nil, err
		}
		forked.Changed = append(forked.Changed, "model")
		forked.Options = map[string]string{"dir": started.Options["dir"], "model": c.Model}
	}
	if c.Prompt != "" {
		cfg.System = c.Prompt
		forked.Changed = append(forked.Changed, "prompt")
	}
	if c.Window > 0 {
		for _, t := range cfg.Targets {
			if t.ContextWindow > 0 && c.Window > t.ContextWindow {
				return forked, nil, fmt.Errorf("launch: fork: a context window of %d tokens is more than the %d of %s", c.Window, t.ContextWindow, t.Model)
			}
		}
		cfg.Compact.Window = c.Window
		forked.Changed = append(forked.Changed, "context_window")
	}
	if len(forked.Changed) == 0 {
		return forked, nil, nil
	}
	if forked.Config, err = json.Marshal(cfg); err != nil {
		return forked, nil, fmt.Errorf("launch: encode config: %w", err)
	}
	return forked, warnings, nil
}

// forkAsIs is for kinds of runs whose forks change nothing; their agents are
// changed in their files.
func forkAsIs(_ *drive.Branch, c ForkChanges, _ Options) (event.RunForked, []string, error) {
	if c.Model != "" || c.Prompt != "" || c.Window > 0 || len(c.Results) > 0 {
		return event.RunForked{}, nil, errors.New("launch: fork: a workflow goes on as it was begun; run its changed file, or fork the run of a step")
	}
	return event.RunForked{}, nil, nil
}

// swap replaces the model of a run, protects the script that it answers from, and
// returns the warnings that are new.
func (o Options) swap(cfg *agent.Config, started *event.RunStarted) (warnings []string, err error) {
	var a *spec.Agent
	if started.Spec != "" {
		if a, err = restore(*started); err != nil {
			return nil, err
		}
	}
	found, warnings, err := o.change(a, cfg, started)
	if err != nil {
		return nil, err
	}
	if a != nil {
		o.Workspace = started.Workspace
		var scripts filePatterns
		o.addScripts(&scripts, a.Dir, o.Model)
		cfg.Policy.Protected = slices.Concat(cfg.Policy.Protected, scripts)
		warnings = append(warnings, capable(a, found, o.resolver(a.Dir))...)
	}
	if err := affordable(*cfg); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(append(warnings, assembly.Warnings(*cfg)...), func(w string) bool { return slices.Contains(started.Warnings, w) }), nil
}

// ErrNoRetry is returned for a run that cannot be retried.
var ErrNoRetry = errors.New("it cannot be retried")

// Retry finds the point of an ended workflow after which a fork repeats what failed
// or was cancelled, or one step if it is named, and what depends on it. The fork keeps
// the completed steps; steps holds those that repeat.
func Retry(ctx context.Context, e *engine.Engine, store journal.Store, row journal.Run, step string) (b *drive.Branch, steps []string, err error) {
	fail := func(format string, args ...any) (*drive.Branch, []string, error) {
		return nil, nil, fmt.Errorf("run "+row.ID+": %w: "+format, append([]any{ErrNoRetry}, args...)...)
	}
	switch {
	case row.State != journal.Ended:
		return fail("it has not ended; resume it")
	case row.Parent != "":
		return fail("it is a step of run %s; retry that", row.Root)
	}
	if b, err = e.Branch(ctx, row.ID, 1); err != nil {
		return nil, nil, err
	}
	var cfg flow.Config
	if b.Started.Machine != flow.Version || json.Unmarshal(b.Started.Config, &cfg) != nil {
		return fail("it is no workflow; a new run takes it up with --continue")
	}
	if slices.ContainsFunc(cfg.Plan.Steps, func(s plan.Step) bool { return s.Loop != nil && s.Loop.Goal != nil }) {
		return fail("it is a goal; fork it at one of its events")
	}
	retry := flow.NewRetry()
	for read, err := range drive.Events(ctx, store, row.ID, 0) {
		if err != nil {
			return nil, nil, err
		}
		retry.Add(read.Event)
	}
	seq, steps, err := retry.Begin(step)
	switch {
	case errors.Is(err, flow.ErrNoStep):
		return fail("it has no step %q that has begun; it has %s", step, strings.Join(retry.Steps(), ", "))
	case err != nil:
		return fail("none of its steps failed or was cancelled; it ended as %s", row.Detail)
	}
	if b, err = e.Branch(ctx, row.ID, seq); err != nil {
		return nil, nil, err
	}
	b.Keep = retry.Kept
	return b, steps, nil
}
