package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/agent"
)

// Errors of [Continue].
var (
	// ErrNotEnded is returned for a run that can still go on by itself.
	ErrNotEnded = errors.New("launch: the run has not ended; resume it instead")
	// ErrNothingNew is returned when neither a message nor a raised limit
	// gives the new run anything to do.
	ErrNothingNew = errors.New("launch: nothing to continue with: give a new message, or raise a limit")
	// ErrMessageNeeded is an ErrNothingNew where a limit was raised and the last
	// word is the model's.
	ErrMessageNeeded = fmt.Errorf("%w: the last word is the model's, so a message is needed", ErrNothingNew)
)

// Continue prepares a new run that starts from an ended one: the same prompt,
// tools and models, its conversation, and a new message or other limits. An
// ended run itself never goes on. Of the options, those that were not set keep
// the ended run's values.
func Continue(ctx context.Context, store journal.Store, run, input string, o Options) (event.RunStarted, engine.Env, error) {
	fail := func(err error) (event.RunStarted, engine.Env, error) { return event.RunStarted{}, engine.Env{}, err }
	old, err := load(ctx, store, run)
	if err != nil {
		return fail(err)
	}
	started := old.started
	a, err := restore(started)
	if err != nil {
		return fail(err)
	}
	if err := recordable(o.Workspace); err != nil {
		return fail(err)
	}
	conversation, err := old.conversation(input, o)
	if err != nil {
		return fail(err)
	}
	if o.Workspace != "" {
		started.Workspace = o.Workspace
	}
	cfg := old.machine.Config()
	if err := o.change(&cfg, &started); err != nil {
		return fail(err)
	}
	files := slices.Concat(filesOf(conversation), o.Attachments)
	if err := readable(modelsOf(cfg.Targets), files, o.resolver(started.Options["files"])); err != nil {
		return fail(err)
	}
	// What is protected, and what hooks run, are files of the workspace as it is now.
	cfg.Policy = o.pinned(started).permissions(a)
	if started.HookFiles, err = pinHooks(a, started.Workspace); err != nil {
		return fail(err)
	}
	if started.Config, err = json.Marshal(cfg); err != nil {
		return fail(fmt.Errorf("launch: encode config: %w", err))
	}
	started.Vocabulary, started.Policy = event.Version, cfg.Policy.Version()
	started.Input = event.InputReceived{Text: input, Media: o.Attachments}.Message()
	started.From = &event.ContinuedFrom{Run: run, Seq: old.seq, Root: old.machine.Workload(), History: conversation, Taint: old.machine.State().Taint}
	started.Sandbox = ""
	env, confined, err := restored(started, o)
	if err != nil {
		return fail(err)
	}
	confined.pin(&started)
	o.confined = confined
	for _, w := range slices.Concat(confined.undecided(cfg.Policy, env.Tools), o.unsupervised(env.Tools), confined.besideLinks(env.Tools)) {
		if !slices.Contains(started.Warnings, w) {
			started.Warnings = append(slices.Clip(started.Warnings), w)
		}
	}
	if started.Fence == nil && env.Tools.Fences() {
		started.Fence = &event.Fence{}
	}
	return started, env, nil
}

// ended is an ended run as its journal tells it.
type ended struct {
	started event.RunStarted
	machine *agent.Machine
	seq     int64
}

func load(ctx context.Context, store journal.Store, run string) (*ended, error) {
	records, err := store.Records(ctx, run, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("launch: load run %s: %w", run, err)
	}
	old := &ended{machine: agent.New()}
	for _, rec := range records {
		e, err := event.Decode(rec.Body)
		if err != nil {
			return nil, fmt.Errorf("launch: load run %s: %w", run, err)
		}
		switch d := e.Data.(type) {
		case event.RunStarted:
			old.started = d
		case event.RunForked:
			old.started = old.started.Forked(d)
		}
		if err := old.machine.Apply(e); err != nil {
			return nil, fmt.Errorf("launch: load run %s: %w", run, err)
		}
		old.seq = rec.Seq
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("launch: load run %s: %w", run, journal.ErrNotFound)
	}
	if old.machine.State().Phase != machine.Ended {
		return nil, fmt.Errorf("%w: %s", ErrNotEnded, run)
	}
	return old, nil
}

// conversation is what the new run starts from. A conversation whose last word
// is the model's needs a new message: no provider answers its own answer.
func (old *ended) conversation(input string, o Options) ([]*llm.Message, error) {
	messages, err := old.machine.Conversation()
	if err != nil {
		return nil, fmt.Errorf("launch: the run's conversation: %w", err)
	}
	switch {
	case input != "" || len(o.Attachments) > 0:
	case !o.raises():
		return nil, ErrNothingNew
	case len(messages) > 0 && messages[len(messages)-1].Role == llm.RoleAssistant:
		return nil, ErrMessageNeeded
	}
	return messages, nil
}

func modelsOf(targets []agent.Target) []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Model
	}
	return names
}

// change puts the flags in the place of what the ended run had.
func (o Options) change(cfg *agent.Config, started *event.RunStarted) error {
	if err := o.replace(&cfg.Limits); err != nil {
		return err
	}
	warnings := unlimited(cfg.Limits)
	cfg.Approve = cmp.Or(o.Approve, cfg.Approve)
	cfg.Whole = cfg.Whole || o.Whole
	if o.Model != "" {
		if err := recordable(absolute(o.Dir)); err != nil {
			return err
		}
		resolver := o.resolver(started.Options["files"])
		if err := resolver.Check(o.Model); err != nil {
			return fmt.Errorf("launch: %w", err)
		}
		ignored, err := runsHosted(cfg.ProviderTools, o.Model, resolver)
		if err != nil {
			return err
		}
		warnings = append(warnings, ignored...)
		t, _ := targetOf(o.Model, resolver)
		cfg.Targets = []agent.Target{t}
		*started = started.Forked(event.RunForked{Options: map[string]string{"dir": absolute(o.Dir), "model": o.Model}})
	}
	warning, err := priced(*cfg, o, o.capsMoney())
	for _, w := range append(warnings, warning) {
		if w != "" && !slices.Contains(started.Warnings, w) {
			started.Warnings = append(slices.Clip(started.Warnings), w)
		}
	}
	return err
}
