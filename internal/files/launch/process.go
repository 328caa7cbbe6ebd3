package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/process"
	"github.com/pawlrun/pawl/tool/external"
	"github.com/pawlrun/pawl/tool/shell"
)

// ProcessRuns is the kind of runs that another agent performs in its own process.
// No file has this kind; the file of such a run has a runner.
func ProcessRuns() Kind {
	return Kind{
		Name: process.Kind, Recognises: func(spec.Heading) bool { return false },
		Check: Check, Launch: Agent, Resume: Environment, Redactor: Redactor,
	}
}

// byRunner prepares a task for the runner of a file. The file's permissions, limits
// and secrets apply to it.
func byRunner(a *spec.Agent, source string, text []byte, task string, o Options) (event.RunStarted, perform.Env, error) {
	r := a.External()
	fail := func(err error) (event.RunStarted, perform.Env, error) { return event.RunStarted{}, perform.Env{}, err }
	if len(o.Attachments) > 0 {
		return fail(errors.New("launch: a runner takes no attachments; what is in the workspace its program finds there"))
	}
	if err := outside(a); err != nil {
		return fail(err)
	}
	if o.tree == nil {
		o.tree = newTree(nil)
	}
	limits := agent.Config{Limits: limits(a)}
	if !o.started {
		if err := o.beginTree(a); err != nil {
			return fail(err)
		}
		var err error
		if task, err = o.input(a, task); err != nil {
			return fail(err)
		}
		limits = assembly.OfTree(limits)
	}
	if err := o.replace(&limits); err != nil {
		return fail(err)
	}
	cfg := process.Config{
		Name: a.Identity.Name, Command: r.Command, Permission: process.Permission,
		Prompt: r.Prompt, Environment: r.Env, Events: r.Streams(), Idle: r.Idle(), MaxTime: r.Longest(), Effect: r.Class(),
		Limits: limits.Limits, Policy: o.permissions(a),
	}
	started, err := process.Start(cfg, task)
	if err != nil {
		return fail(err)
	}
	env, err := o.processEnv(a, cfg)
	if err != nil {
		return fail(err)
	}
	started.Source, started.Spec, started.Workspace, started.Options = source, string(text), o.Workspace, o.record(a)
	started.Warnings = append(messagesOf(a.Warnings), ungoverned(r)...)
	return started, env, nil
}

// ungoverned returns warnings about what a runner does without Pawl's control.
func ungoverned(r *spec.Runner) []string {
	if r == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s decides itself what it does: it runs outside the sandbox with your permissions, "+
		"and a budget in money counts what it says that it cost, when it has ended", r.Command[0])}
}

// outside rejects a runner whose file demands a sandbox: its program needs its own
// network and home directory.
func outside(a *spec.Agent) error {
	p := a.Tools.Permissions
	if p == nil {
		return nil
	}
	demands := ""
	switch {
	case p.Sandbox != "" && !p.OnDemand():
		demands = "tools.permissions.sandbox is " + p.Sandbox
	case p.Network != "" && p.Network != "host":
		demands = "tools.permissions.network is " + p.Network
	}
	if demands == "" {
		return nil
	}
	return fmt.Errorf("%w: %s, and the program of a runner runs outside every sandbox; take that out", ErrSandbox, demands)
}

// processEnv returns the environment of such a run.
func (o Options) processEnv(a *spec.Agent, cfg process.Config) (perform.Env, error) {
	declared, err := secrets(a, o)
	if err != nil {
		return perform.Env{}, err
	}
	var variables []string
	getenv := o.getenv()
	for _, name := range cfg.Environment {
		value := getenv(name)
		if value == "" {
			continue
		}
		variables = append(variables, name+"="+value)
		if s := (secret.Secret{Name: name, Value: value}); secret.LikelyName(name) && s.Validate() == nil {
			declared = append(slices.Clip(declared), s)
		}
	}
	return perform.Env{
		Rules: cfg.Policy, Secrets: secret.NewRedactor(declared...),
		Commands: external.Commands(external.Options{
			Shell: shell.Options{
				Dir: o.Workspace, Env: withVariables(shell.Environment(os.Environ()), declared), Protected: protect(cfg.Policy),
			},
			Prompt: cfg.Prompt, Variables: variables, Events: cfg.Events,
		}),
	}, nil
}

// resumeProcess returns the environment of such a run when it resumes.
func (o Options) resumeProcess(a *spec.Agent, started event.RunStarted) (perform.Env, error) {
	var cfg process.Config
	if err := json.Unmarshal(started.Config, &cfg); err != nil {
		return perform.Env{}, fmt.Errorf("launch: the run's configuration: %w", err)
	}
	if err := o.guarded(cfg.Policy); err != nil {
		return perform.Env{}, err
	}
	return o.processEnv(a, cfg)
}
