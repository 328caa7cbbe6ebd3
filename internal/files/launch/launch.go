// Package launch prepares runs from files and flags: it turns an agent file and the
// flags of a command into a run that an engine can start, continues an ended run as
// a new one, and rebuilds the environment of a run that resumes after its process
// died.
package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/servers"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/tool"
)

// Agent prepares a run of an agent file.
func Agent(f File, input string, o Options) (event.RunStarted, perform.Env, error) {
	if f.Sent {
		return sent(f, input, o)
	}
	a, err := spec.ParseAgent(f.Path, f.Text, o.Checks())
	if err != nil {
		return event.RunStarted{}, perform.Env{}, err
	}
	if a.Identity.Name == "" {
		a.Identity.Name = nameOf(f.Path)
	}
	return Prepare(a, spec.Absolute(f.Path), f.Text, input, o)
}

// Prepare prepares a run of an agent that is already parsed. The run pins text as its
// file, whose path is source; it is empty for an agent without a file.
func Prepare(a *spec.Agent, source string, text []byte, input string, o Options) (event.RunStarted, perform.Env, error) {
	fail := func(err error) (event.RunStarted, perform.Env, error) { return event.RunStarted{}, perform.Env{}, err }
	if err := recordable(source, a.Dir, o.Dir, o.Workspace); err != nil {
		return fail(err)
	}
	if a.Tools.MCPFile != "" { // the run goes on with the servers that it had
		whole, err := a.Text()
		if err != nil {
			return fail(err)
		}
		text = whole
	}
	if a.StartsOthers() {
		return ofPlan(a, source, text, input, o)
	}
	if a.External() != nil {
		return byRunner(a, source, text, input, o)
	}
	if o.tree == nil {
		o.tree = newTree(nil)
	}
	resolver := o.resolver(a.Dir)
	targets, err := o.targetsOf(o.source, a, resolver)
	if err != nil {
		return fail(err)
	}
	for _, t := range targets {
		if err := taken([]string{t.Model}, nil, o.Attachments, resolver); err != nil {
			return fail(err)
		}
	}
	if !o.started {
		if err := o.beginTree(a); err != nil {
			return fail(err)
		}
		if input, err = o.input(a, input); err != nil {
			return fail(err)
		}
	}
	if o.hookPins, err = pinHooks(a, o.Workspace); err != nil {
		return fail(err)
	}
	if o.commandPins, err = pinCommands(a, o.Workspace); err != nil {
		return fail(err)
	}
	o.nested = nestedFor(a, o.Workspace, o.tree.builtin())
	if o.confined, err = o.confine(a, ""); err != nil {
		return fail(err)
	}
	o.served = &servers.Servers{}
	o.skills = o.skillsOf(a)
	d, err := o.definition(a, resolver)
	if err != nil {
		return fail(err)
	}
	env := d.Host
	if d.Config, err = o.config(a, targets); err != nil {
		return fail(assembly.Closing(env, err))
	}
	d.Tools = assembly.WithSearch(d.Tools, assembly.Defer(&d.Config, d.Tools, a.Tools.Defers))
	p, err := d.Prepare()
	if err != nil {
		return fail(assembly.Closing(env, unaffordable(err)))
	}
	env = p.Env()
	warnings := o.warnings(a, p.Config, targets, env.Tools)
	started, err := p.Start(event.InputReceived{Text: input, Media: o.Attachments}, nil)
	if err != nil {
		return fail(assembly.Closing(env, err))
	}
	started.Source, started.Spec, started.Workspace = source, string(text), o.Workspace
	started.Options, started.HookFiles, started.Commands = o.record(a), o.hookPins, o.commandPins
	started.Servers, started.Instructions, started.Skills = o.served.Pins(), o.texts(a), o.skills
	if o.pinAgents(&started); !o.started {
		started.MaxDepth = o.MaxDepth
	}
	o.confined.pin(&started)
	started.Warnings = append(warnings, o.served.Warnings()...)
	return started, env, nil
}

// beginTree prepares what the root of a tree pins for all of its descendants.
func (o *Options) beginTree(a *spec.Agent) (err error) {
	if a.System, err = a.Expand(o.Vars); err != nil {
		return err
	}
	return o.gather(a)
}

// warnings returns what the owner should know about a run that starts.
func (o Options) warnings(a *spec.Agent, cfg agent.Config, targets []target, tools *tool.Set) []string {
	var all []string
	for _, w := range a.Warnings {
		if w.Path == "approvals.mode" && o.Approve != "" {
			continue // the flag replaces it
		}
		all = append(all, w.String())
	}
	if !o.started {
		all = append(all, o.Tree.Notes...)
	}
	return slices.Concat(all, o.tooDeep(a, plan.Plan{}), capable(a, targets, o.resolver(a.Dir)), o.confined.undecided(cfg.Policy, tools), o.unsupervised(tools),
		o.confined.linkWarnings(tools), o.confined.belowHidden(tools), o.nested.unsearched(tools), assembly.Removed(cfg.Limits.Lacks(), o.started), money(cfg))
}

// ErrNoInput is returned for a run without anything to do: no input, no attachment,
// and no task in its file.
var ErrNoInput = errors.New("launch: there is no input, and the file has no prompt.task")

// input returns the input of a root run: the text it was given, or else the task of
// its file.
func (o Options) input(a *spec.Agent, given string) (string, error) {
	if given == "" {
		var err error
		if given, err = a.ExpandTask(o.Vars); err != nil {
			return "", err
		}
	}
	if strings.TrimSpace(given) == "" && len(o.Attachments) == 0 {
		return "", ErrNoInput
	}
	return given, nil
}

// Environment builds the environment of a resumed run from its first event. A model
// that can no longer be called is an error, so the run stays as it is instead of
// failing.
//
// It uses only the config, limiter, replay, sandbox and journal of the options; the
// flags were pinned when the run began. A run never resumes in a weaker sandbox
// than it began in; the error is then [ErrSandbox].
func Environment(started event.RunStarted, o Options) (perform.Env, error) {
	env, _, err := restored(started, o.seams())
	return env, err
}

// ErrNoFile is returned for a run that was started by a program embedding Pawl: the
// program defines the run, not an agent file.
var ErrNoFile = errors.New("launch: the run was started by a program that embeds Pawl, not from an agent file, so only that program can resume it")

// restored is [Environment] with all seams of o, and also returns the run's
// sandbox.
func restored(started event.RunStarted, o Options) (perform.Env, confinement, error) {
	a, err := restore(started)
	if err != nil {
		return perform.Env{}, confinement{}, err
	}
	o = o.pinned(started)
	if err := checkWorkspace(o.Workspace); err != nil {
		return perform.Env{}, confinement{}, err
	}
	if a.StartsOthers() {
		if a.Loops() {
			a = a.LoopRoot()
		}
		env, err := o.resumePlan(a, started)
		return env, confinement{}, err
	}
	if started.Governance == event.GovernanceExternal {
		env, err := o.resumeProcess(a, started)
		return env, confinement{}, err
	}
	var cfg agent.Config
	if err := json.Unmarshal(started.Config, &cfg); err != nil {
		return perform.Env{}, confinement{}, fmt.Errorf("launch: the run's configuration: %w", err)
	}
	if err := o.guarded(cfg.Policy); err != nil {
		return perform.Env{}, confinement{}, err
	}
	resolver := o.resolver(a.Dir)
	for _, t := range cfg.Targets {
		if err := resolver.Check(t.Model); err != nil {
			return perform.Env{}, confinement{}, fmt.Errorf("launch: %w", err)
		}
	}
	if o.hookPins = started.HookFiles; o.hookPins == nil {
		if o.hookPins, err = pinHooks(a, o.Workspace); err != nil {
			return perform.Env{}, confinement{}, err
		}
	}
	o.commandPins, o.skills = started.Commands, started.Skills
	o.served, o.deferred = servers.Resumed(started.Servers), assembly.Deferred(cfg)
	if o.opensConfig(a, cfg.Policy) {
		return perform.Env{}, confinement{}, fmt.Errorf("launch: the rules that the run began with let its tools write the config file (%s); "+
			"keep it outside of the run's workspace, or in its .pawl", o.Config.File)
	}
	o.nested.patterns, o.protected = cfg.Policy.Nested, cfg.Policy.Protected
	if o.confined, err = o.confine(a, started.Sandbox); err != nil {
		return perform.Env{}, confinement{}, err
	}
	env, err := o.environment(a, resolver)
	return env, o.confined, err
}

// pinned returns the options with the values of a run's first event.
func (o Options) pinned(started event.RunStarted) Options {
	o.Workspace = started.Workspace
	o.Dir = cmp.Or(started.Options["dir"], o.Dir)
	o.Model = cmp.Or(o.Model, started.Options["model"])
	o.Approve = cmp.Or(o.Approve, agent.ApproveMode(started.Options["approve"]))
	o.started = started.Parent != ""
	if files := pinnedAgents(started); o.tree == nil || !maps.Equal(files, o.tree.files) {
		o.tree = newTree(files)
	}
	return o
}

// checkWorkspace returns an error unless a run's workspace is where it was.
func checkWorkspace(workspace string) error {
	info, err := os.Stat(workspace)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !info.IsDir():
		return fmt.Errorf("launch: the run's workspace %s is gone; put the directory back, then resume the run", workspace)
	case err != nil:
		return fmt.Errorf("launch: the run's workspace: %w", err)
	}
	return nil
}

// restore reads the agent file that a run was started with. The file resolves
// relative paths as it did then.
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
	withSchemas(a, started.Commands)
	return a, nil
}

// recordable rejects a path that a journal cannot store, because journals hold
// valid text only: the run would resume with other files, or none.
func recordable(paths ...string) error {
	for _, path := range paths {
		if !utf8.ValidString(path) {
			return fmt.Errorf("launch: the path %s is not valid UTF-8, so it cannot be in a journal; rename it", path)
		}
	}
	return nil
}

// record stores the options that a resumed run needs, independent of the directory
// it is resumed from.
func (o Options) record(a *spec.Agent) map[string]string {
	m := map[string]string{"dir": spec.Absolute(o.Dir), "files": spec.Absolute(a.Dir), "model": o.Model, "approve": string(o.Approve)}
	maps.DeleteFunc(m, func(_, v string) bool { return v == "" })
	for name, value := range o.Vars {
		m["var."+name] = value
	}
	return m
}

// resolver opens the models of a file in dir.
func (o Options) resolver(dir string) *models.Resolver {
	r := &models.Resolver{Dirs: []string{dir, o.Dir}, Getenv: o.Getenv, Config: o.Config, Limiter: o.Limiter, Replay: o.Replay}
	if o.tree != nil {
		r.Known = o.tree.prices
	}
	return r
}

// File is the text of a file that describes a run.
type File struct {
	// Path is where the file is. For a file that was sent as text it is the name
	// used in problems.
	Path string
	Text []byte
	// Sent marks a file that a client sent as text: it may not name files, secrets
	// or programs of this machine.
	Sent bool
}

// Kind is one kind of runnable files. A nil function means that runs of the kind do
// not support the operation. Package launch/kinds has the table of kinds.
type Kind struct {
	// Name is the kind in the first event of such a run ([event.RunStarted.Kind]);
	// in lower case it names the file's schema, see [schema.Of].
	Name string
	// Recognises reports whether a file is of this kind, valid or not.
	Recognises func(spec.Heading) bool
	// Check validates a file and returns warnings for its owner, without a
	// workspace, a key or a call. The error is [decode.Errors] if the file is
	// invalid.
	Check func(File, Options) (warnings []decode.Problem, err error)
	// Launch prepares a run of a file. The error is [decode.Errors] if the file is
	// invalid, and [ErrNoInput] if the run would have nothing to do. After an error
	// nothing has started.
	Launch func(f File, input string, o Options) (event.RunStarted, perform.Env, error)
	// Limits returns an agent whose limits are those of a whole run of the file;
	// nil means that the file is an agent file itself.
	Limits func(path string, text []byte) (*spec.Agent, error)
	// Plan returns the plan of a file, for drawing it.
	Plan func(File, Options) (plan.Plan, error)
	// Signature returns what a run of a file takes and returns.
	Signature func(File, Options) (Signature, error)
	// Explain reports what a run of a file would do with one call of a tool.
	Explain func(f File, call string, o Options) (Explanation, error)
	// Call runs one call of a program of tools.commands outside a run; see [CallProgram].
	Call func(ctx context.Context, f File, call string, o Options) (tool.Result, error)
	// Resume returns the environment of a resumed run from its first event; see
	// [Environment].
	Resume func(event.RunStarted, Options) (perform.Env, error)
	// Continue prepares a run that continues an ended one; see [Continue].
	Continue func(ctx context.Context, store journal.Store, run, input string, o Options) (event.RunStarted, perform.Env, error)
	// Fork prepares the changes of a fork; see [Fork].
	Fork func(*drive.Branch, ForkChanges, Options) (f event.RunForked, warnings []string, err error)
	// Redactor removes a run's secrets from its input; see [Redactor].
	Redactor func(event.RunStarted) (r *secret.Redactor, missing []string, err error)
	// CheckCall validates a call of a run's tool; see [CheckCall].
	CheckCall func(event.RunStarted, llm.ToolCall) (*event.Problem, error)
	// Templates are starting points for such a file.
	Templates []Template
}

// Template is a starting point for a file. Its files are in the directory of its name,
// among the templates of 'pawl init'.
type Template struct {
	Name, About, Task string
	// File is the file to run.
	File string
	// Workspace is the directory of the template to try it in.
	Workspace string
}

// AgentFiles is the kind of files that describe one agent.
func AgentFiles() Kind {
	return Kind{
		Name: agent.Kind, Recognises: spec.Heading.Agent,
		Check: Check, Launch: Agent, Signature: signature, Explain: Explain, Call: CallProgram,
		Resume: Environment, Continue: Continue, Fork: Fork, Redactor: Redactor, CheckCall: CheckCall,
		Templates: []Template{
			{Name: "minimal", About: "reads files and answers questions about them", Task: "What is in this directory?", File: "agent.yaml"},
			{Name: "fix-tests", About: "changes code until its tests pass", Task: "Make the tests pass.", File: "agent.yaml", Workspace: "demo"},
			{Name: "ask-first", About: "asks a person before it writes a file", Task: "Write an announcement to announcement.md.", File: "agent.yaml"},
			{Name: "report", About: "answers in JSON that matches a schema", Task: "Which files are here?", File: "agent.yaml"},
			{Name: "tool", About: "calls two programs of yours, in Python and in sh", Task: "What is ticket 1 about, and how long is its title?", File: "agent.yaml"},
			{Name: "loop", About: "repeats one task in fresh runs until its tests pass", Task: "Make the tests pass.", File: "agent.yaml", Workspace: "demo"},
		},
	}
}
