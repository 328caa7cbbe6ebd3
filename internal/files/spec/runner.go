package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/host/secret"
)

// Runner is the command line of another agent that does the work of an iteration, in a
// separate process.
type Runner struct {
	// Command is the program and its arguments, without a shell.
	Command []string `yaml:"command,omitempty"`
	// Prompt sets how the program gets its task.
	Prompt string `yaml:"prompt,omitempty" oneof:"argument stdin file"`
	// Env names variables that it gets in addition to those of commands; they may
	// contain keys.
	Env []string `yaml:"env,omitempty"`
	// Events is auto if its output may be a stream of events, none if it is text.
	Events string `yaml:"events,omitempty" oneof:"auto none"`
	// IdleTimeout bounds the time without output, MaxTime the whole run.
	IdleTimeout *Seconds `yaml:"idle_timeout,omitempty"`
	MaxTime     *Seconds `yaml:"max_time,omitempty"`
	// Effect is the effect of running it twice.
	Effect string `yaml:"effect,omitempty" oneof:"pure idempotent at_most_once"`
}

// idleTimeout is the default of IdleTimeout.
const idleTimeout = 300 * time.Second

// Idle returns the limit on the time without output, 0 for none.
func (c *Runner) Idle() time.Duration {
	if c.IdleTimeout == nil {
		return idleTimeout
	}
	return c.IdleTimeout.Duration()
}

// Longest returns the limit on the program's time, 0 for none.
func (c *Runner) Longest() time.Duration { return decode.Given(c.MaxTime).Duration() }

// Class returns the effect of running the program twice.
func (c *Runner) Class() event.Effect {
	return cmp.Or(event.Effect(c.Effect), event.EffectAtMostOnce)
}

// Streams reports whether the program's output may be a stream of events.
func (c *Runner) Streams() bool { return c.Events != "none" }

// validate checks a runner at a path.
func (c *Runner) validate(r *decode.Report, path string) {
	at := decode.Join(path, "command")
	switch {
	case len(c.Command) == 0 || strings.TrimSpace(c.Command[0]) == "":
		decode.Missing(r, at, "a program and its arguments, such as [claude, -p]")
	case slices.ContainsFunc(c.Command, func(word string) bool { return strings.ContainsRune(word, 0) }):
		r.At(at, "a program and its arguments", "has a NUL byte in it")
	}
	for i, name := range c.Env {
		if !secret.ValidName(name) {
			r.At(fmt.Sprintf("%s.env[%d]", path, i), "the name of a variable", "is %q; values stand in no file", name)
		}
	}
	for key, t := range map[string]*Seconds{"idle_timeout": c.IdleTimeout, "max_time": c.MaxTime} { // problems are sorted
		if t != nil && *t < 0 {
			r.At(decode.Join(path, key), "0 for none, or a time", "is %g", *t)
		}
	}
}

// External returns the runner that does the work of a run of the file, nil if its agent
// or its child runs do it.
func (a *Agent) External() *Runner {
	if a.StartsOthers() || a.Loop == nil {
		return nil
	}
	return a.Loop.Runner
}

// validateRunner checks the runner of a loop, and rejects settings beside it that
// would have no effect.
func (a *Agent) validateRunner(r *decode.Report, o Options) {
	c := a.Loop.Runner
	if c == nil {
		return
	}
	c.validate(r, "loop.runner")
	for key, given := range map[string]bool{
		"prompt.system": a.Prompt.System != "", "prompt.system_file": a.Prompt.SystemFile != "", "iteration": a.Iteration != nil, "instructions": len(a.Instructions) > 0, "skills": len(a.Skills) > 0,
		"resultSchema": a.ResultSchema != nil, "hooks": a.Hooks != nil, "tools.allow": a.Tools.Allow != nil,
		"tools.approvals": len(a.Tools.Approvals) > 0, "tools.agents": len(a.Tools.Agents) > 0,
		"tools.commands": len(a.Tools.Commands) > 0,
	} {
		if given || r.Has(key) && !r.Reported(key) {
			r.At(key, "a file without it", "means nothing to the program of loop.runner, which does the work in the agent's place")
		}
	}
	if len(a.Chain()) > 0 || o.Model != "" {
		return
	}
	s, at := a.loopSettings()
	for i, stop := range s.StopWhen {
		if stop.Judge != nil && stop.Judge.Model == "" {
			decode.Missing(r, at(fmt.Sprintf("stop_when[%d]", i))+".judge.model", "a model as provider/name, because the file names none")
		}
	}
}
