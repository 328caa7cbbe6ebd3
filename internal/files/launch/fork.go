package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/machine/agent"
)

// ForkChanges are what a fork does otherwise than the run that it shares.
type ForkChanges struct {
	// Model replaces every model, Prompt the system prompt; "" keeps them.
	Model  string
	Prompt string
	// Window replaces the context window, in tokens; 0 keeps it. It gives a
	// conversation room that was compacted behind the point of the fork.
	Window int
	// Results replace what calls gave.
	Results []event.ForkedResult
}

// Fork prepares what a fork changes. It is recorded whole, so that a fold of
// the fork needs nothing but the journal. Of the options, those count
// that say how models are found. The warnings are about what is new.
func Fork(b *engine.Branch, c ForkChanges, o Options) (forked event.RunForked, warnings []string, err error) {
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

// forkAsIs is for runs that do in a fork what they were to do: their agents are
// changed in their file.
func forkAsIs(_ *engine.Branch, c ForkChanges, _ Options) (event.RunForked, []string, error) {
	if c.Model != "" || c.Prompt != "" || c.Window > 0 || len(c.Results) > 0 {
		return event.RunForked{}, nil, errors.New("launch: fork: a workflow goes on as it was begun; run its changed file, or fork the run of a step")
	}
	return event.RunForked{}, nil, nil
}

// swap puts another model in the place of a run's, protects the script that it
// answers from, and says what is to be known of it that was not said before.
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
		var scripts literals
		o.addScripts(&scripts, a.Dir, o.Model)
		cfg.Policy.Protected = slices.Concat(cfg.Policy.Protected, scripts)
		warnings = append(warnings, capable(a, found, o.resolver(a.Dir))...)
	}
	if err := affordable(*cfg); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(append(warnings, assembly.Warnings(*cfg)...), func(w string) bool { return slices.Contains(started.Warnings, w) }), nil
}
