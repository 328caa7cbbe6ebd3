// Package launch turns an agent file and the flags of a command into a run
// that an engine can start, an ended run into one that continues it, and a run
// whose process is gone back into one that can be resumed.
package launch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/transport"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/policy"
	"github.com/pawlrun/pawl/sandbox"
	"github.com/pawlrun/pawl/spec"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/web"
)

// Options are the flags that change what a file says.
type Options struct {
	// Model replaces every model of the file.
	Model string
	// Workspace is the directory that the tools work in.
	Workspace string
	// MaxCycles replaces the file's cycle caps; 0 leaves them, and
	// [budget.None] takes them away.
	MaxCycles int
	// BudgetUSD replaces the file's caps in money, NoBudget removes them.
	BudgetUSD *float64
	NoBudget  bool
	// TimeoutSeconds replaces the wall-time budget; 0 leaves it, and
	// [budget.None] takes it away.
	TimeoutSeconds float64
	// Limits replace single limits of the file, after all of the above.
	Limits  []Limit
	Approve agent.ApproveMode
	// Whole asks the provider for whole answers instead of streams.
	Whole bool
	// Attachments are images and files that go with the input.
	Attachments []llm.Media
	// Vars are the values of the prompt's ${name}.
	Vars map[string]string
	// Dir is the directory that relative paths of flags are relative to.
	Dir string
	// Getenv looks keys and endpoints up; nil means os.Getenv.
	Getenv func(string) string
	// Replay opens the model that answers from a recorded run; nil where there
	// is no journal.
	Replay func(run string) (llm.Model, error)
	// Config is what the owner's config file says, see [ReadConfig].
	Config models.Config
	// Limiter is shared by all runs of a process; nil limits nothing.
	Limiter *transport.Limiter
	// Pages are shared by all runs of a process; nil are each run's own.
	Pages *web.Places
	// Sandbox is what this machine can do; nil runs commands without one.
	Sandbox *sandbox.Machine
	// Journal is the path of the journal, which no command may read and no tool
	// may write: a call could otherwise approve itself.
	Journal string

	// confined is where the commands of the run run, and hookPins what the programs
	// of its hooks held when it began, and nested the repositories that were
	// within its workspace then.
	confined confinement
	hookPins []event.HookFile
	nested   nested
	// protected is what the rules protect that a run began with.
	protected []policy.Pattern
}

// Limit is a new value of one of [budget.Settings]; [budget.None] takes the
// limit away.
type Limit struct {
	Setting string
	Value   float64
}

// Machine makes an empty machine of the version that a journal names.
func Machine(version string) (machine.Machine, error) {
	if version != agent.Version {
		return nil, fmt.Errorf("launch: %w: machine %s", agent.ErrUnsupported, version)
	}
	return agent.New(), nil
}

// Agent prepares a run of an agent file. The error is [spec.Errors] when the
// file is wrong; whatever it is, nothing has begun.
func Agent(path string, input string, o Options) (event.RunStarted, engine.Env, error) {
	source, err := filepath.Abs(path)
	if err != nil {
		return event.RunStarted{}, engine.Env{}, fmt.Errorf("launch: %w", err)
	}
	a, text, err := spec.ReadAgent(path, o.checks())
	if err != nil {
		return event.RunStarted{}, engine.Env{}, err
	}
	if a.Identity.Name == "" {
		a.Identity.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	return prepare(a, source, text, input, o)
}

// Built prepares a run of an agent that was built in code. It is held to the
// rules of a file (ALDO-69), and completed by [spec.Agent.Validate].
func Built(a *spec.Agent, input string, o Options) (event.RunStarted, engine.Env, error) {
	if err := a.Validate(o.checks()); err != nil {
		return event.RunStarted{}, engine.Env{}, err
	}
	text, err := a.Text()
	if err != nil {
		return event.RunStarted{}, engine.Env{}, err
	}
	return prepare(a, "", text, input, o)
}

func prepare(a *spec.Agent, source string, text []byte, input string, o Options) (event.RunStarted, engine.Env, error) {
	fail := func(err error) (event.RunStarted, engine.Env, error) { return event.RunStarted{}, engine.Env{}, err }
	if err := recordable(source, a.Dir, o.Dir, o.Workspace); err != nil {
		return fail(err)
	}
	resolver := o.resolver(a.Dir)
	targets, err := targets(a, o, resolver)
	if err != nil {
		return fail(err)
	}
	for _, t := range targets {
		if err := taken([]string{t.Model}, nil, o.Attachments, resolver); err != nil {
			return fail(err)
		}
	}
	if a.System, err = a.Expand(o.Vars); err != nil {
		return fail(err)
	}
	if o.hookPins, err = pinHooks(a, o.Workspace); err != nil {
		return fail(err)
	}
	o.nested = nestedFor(a, o.Workspace)
	if o.confined, err = o.confine(a, ""); err != nil {
		return fail(err)
	}
	env, tools, err := environment(a, o, resolver)
	if err != nil {
		return fail(err)
	}
	cfg := config(a, o, targets, tools)
	if err := o.replace(&cfg); err != nil {
		return fail(closing(env, err))
	}
	warnings, err := o.warnings(a, cfg, targets, tools)
	if err != nil {
		return fail(closing(env, err))
	}
	var marks *event.Fence
	if tools.Fences() {
		marks = &event.Fence{}
	}
	started, err := agent.StartFenced(cfg, event.InputReceived{Text: cmp.Or(input, begin), Media: o.Attachments}.Message(), marks)
	if err != nil {
		return fail(closing(env, err))
	}
	started.Name, started.Source, started.Spec, started.Workspace = a.Identity.Name, source, string(text), o.Workspace
	started.Options, started.HookFiles = o.record(a), o.hookPins
	o.confined.pin(&started)
	started.Warnings = warnings
	return started, env, nil
}

// warnings are what the owner should know of a run that begins. The error is that
// of [priced].
func (o Options) warnings(a *spec.Agent, cfg agent.Config, targets []target, tools *tool.Set) ([]string, error) {
	costs, err := money(o, cfg)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, w := range a.Warnings {
		if w.Path == "approvals.mode" && o.Approve != "" {
			continue // the flag holds in its place
		}
		all = append(all, w.String())
	}
	return slices.Concat(all, capable(a, targets, o.resolver(a.Dir)), o.confined.undecided(cfg.Policy, tools), o.unsupervised(tools),
		o.confined.besideLinks(tools), o.nested.unsearched(tools), unlimited(cfg.Limits), costs), nil
}

// begin is the first message of a run whose whole task is in its prompt: no
// provider answers without one.
const begin = "Begin."

// closing closes an environment that will not be used.
func closing(env engine.Env, err error) error {
	if env.Close != nil {
		_ = env.Close()
	}
	return err
}

// Environment builds the environment of a run that is resumed from its first
// event. A model that cannot be called any more is an error here, so that the
// run stays as it is instead of failing.
//
// Of the options only the config, the limiter, the replay, the sandbox and the
// journal count: what the flags said was pinned when the run began. A run goes
// on in no weaker sandbox than it began in; the error is then [ErrSandbox].
func Environment(started event.RunStarted, o Options) (engine.Env, error) {
	env, _, err := restored(started, Options{
		Config: o.Config, Limiter: o.Limiter, Pages: o.Pages, Replay: o.Replay, Sandbox: o.Sandbox, Journal: o.Journal,
	})
	return env, err
}

// ErrNoFile is returned for a run that a program started which embeds Pawl: what
// it is made of is in that program, not in an agent file.
var ErrNoFile = errors.New("launch: the run was started by a program that embeds Pawl, not from an agent file, so only that program can go on with it")

// restored is [Environment] with all the seams of o, and says in which sandbox.
func restored(started event.RunStarted, o Options) (engine.Env, confinement, error) {
	a, err := restore(started)
	if err != nil {
		return engine.Env{}, confinement{}, err
	}
	o = o.pinned(started)
	if err := present(o.Workspace); err != nil {
		return engine.Env{}, confinement{}, err
	}
	var cfg agent.Config
	if err := json.Unmarshal(started.Config, &cfg); err != nil {
		return engine.Env{}, confinement{}, fmt.Errorf("launch: the run's configuration: %w", err)
	}
	if !o.guards(cfg.Policy) {
		return engine.Env{}, confinement{}, fmt.Errorf("launch: the rules that the run began with let its tools write the journal where it lies now (%s); "+
			"move it out of the run's workspace", o.Journal)
	}
	resolver := o.resolver(a.Dir)
	for _, t := range cfg.Targets {
		if err := resolver.Check(t.Model); err != nil {
			return engine.Env{}, confinement{}, fmt.Errorf("launch: %w", err)
		}
	}
	if o.hookPins = started.HookFiles; o.hookPins == nil {
		if o.hookPins, err = pinHooks(a, o.Workspace); err != nil {
			return engine.Env{}, confinement{}, err
		}
	}
	if o.opensConfig(a, cfg.Policy) {
		return engine.Env{}, confinement{}, fmt.Errorf("launch: the rules that the run began with let its tools write the config file (%s); "+
			"keep it outside of the run's workspace, or in its .pawl", o.Config.File)
	}
	o.nested.patterns, o.protected = cfg.Policy.Nested, cfg.Policy.Protected
	if o.confined, err = o.confine(a, started.Sandbox); err != nil {
		return engine.Env{}, confinement{}, err
	}
	env, _, err := environment(a, o, resolver)
	return env, o.confined, err
}

// pinned are the options with what a run's first event has in their place.
func (o Options) pinned(started event.RunStarted) Options {
	o.Workspace = started.Workspace
	o.Dir = cmp.Or(started.Options["dir"], o.Dir)
	o.Model = cmp.Or(o.Model, started.Options["model"])
	o.Approve = cmp.Or(o.Approve, agent.ApproveMode(started.Options["approve"]))
	return o
}

// present says that a run's workspace is where it was.
func present(workspace string) error {
	info, err := os.Stat(workspace)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !info.IsDir():
		return fmt.Errorf("launch: the run's workspace %s is gone; put the directory back, then go on with the run", workspace)
	case err != nil:
		return fmt.Errorf("launch: the run's workspace: %w", err)
	}
	return nil
}

// restore reads the agent file that a run was started with, which finds its
// own files where they were then.
func restore(started event.RunStarted) (*spec.Agent, error) {
	if started.Spec == "" {
		return nil, ErrNoFile
	}
	a, err := spec.Restore(started.Source, []byte(started.Spec))
	if err != nil {
		return nil, fmt.Errorf("launch: the run's agent file: %w", err)
	}
	if dir := started.Options["files"]; dir != "" {
		a.Dir = dir
	}
	return a, nil
}

// recordable refuses a path that a journal, which holds text alone, would have
// as another one: the run would go on with other files, or with none.
func recordable(paths ...string) error {
	for _, path := range paths {
		if !utf8.ValidString(path) {
			return fmt.Errorf("launch: the path %s is not valid UTF-8, so that no journal can hold it; rename it", path)
		}
	}
	return nil
}

// record names the options that a resumed run needs again, whatever directory
// it is resumed from.
func (o Options) record(a *spec.Agent) map[string]string {
	m := map[string]string{"dir": absolute(o.Dir), "files": absolute(a.Dir), "model": o.Model, "approve": string(o.Approve)}
	maps.DeleteFunc(m, func(_, v string) bool { return v == "" })
	return m
}

func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// resolver opens the models of a file in dir.
func (o Options) resolver(dir string) *models.Resolver {
	return &models.Resolver{Dirs: []string{dir, o.Dir}, Getenv: o.Getenv, Config: o.Config, Limiter: o.Limiter, Replay: o.Replay}
}
