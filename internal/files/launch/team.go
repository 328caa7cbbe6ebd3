package launch

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// The kinds of the runs of agent files that start others: teams have composite, and
// refinement loops have loop.
const (
	KindTeam = "Team"
	KindLoop = "Loop"
)

// TeamFiles is the kind of agent files that describe a team.
func TeamFiles() Kind {
	return Kind{
		Name: KindTeam, Recognises: spec.Heading.Team,
		Check: Check, Launch: Agent, Resume: Environment, Redactor: workflowRedactor, Plan: planOfAgent,
	}
}

// LoopFiles is the kind of agent files with a refinement loop.
func LoopFiles() Kind {
	return Kind{
		Name: KindLoop, Recognises: spec.Heading.Loop,
		Check: Check, Launch: Agent, Resume: Environment, Redactor: workflowRedactor, Plan: planOfAgent, Explain: Explain, Call: CallProgram, Fork: forkAsIs,
	}
}

// planOfAgent is what such a file is to do.
func planOfAgent(f File, o Options) (plan.Plan, error) {
	a, err := spec.ParseAgent(f.Path, f.Text, o.checksOf(f))
	if err != nil {
		return plan.Plan{}, err
	}
	return a.Plan(), nil
}

// ofPlan prepares a run of an agent file that starts other runs: a team, or a
// refinement loop.
func ofPlan(a *spec.Agent, source string, text []byte, input string, o Options) (event.RunStarted, engine.Env, error) {
	fail := func(err error) (event.RunStarted, engine.Env, error) { return event.RunStarted{}, engine.Env{}, err }
	if a.Composite != nil && len(o.Attachments) > 0 {
		return fail(errors.New("launch: a team takes no attachments"))
	}
	if o.tree == nil {
		o.tree = newTree(nil)
	}
	o.forAgents = o.limitsOfAgents()
	if !o.started {
		if err := o.beginTree(a); err != nil {
			return fail(err)
		}
		var err error
		if input, err = o.input(a, input); err != nil {
			return fail(err)
		}
	}
	kind, root := KindTeam, a
	if a.Loops() {
		kind, root = KindLoop, a.LoopRoot()
	}
	started, env, err := o.startPlan(a.Plan(), root, input)
	if err != nil {
		return fail(err)
	}
	started.Kind, started.Source, started.Spec = kind, source, string(text)
	started.Warnings = append(said(a.Warnings), started.Warnings...)
	if a.Loops() {
		started.Warnings = append(started.Warnings, ungoverned(a.Loop.Runner)...)
	}
	return started, env, nil
}

// resumePlan gives the environment of a run that goes on with its plan, whose agents
// root offers.
func (o Options) resumePlan(root *spec.Agent, started event.RunStarted) (engine.Env, error) {
	env, err := o.workflowEnv(root)
	if err != nil {
		return engine.Env{}, err
	}
	var cfg flow.Config
	if err := json.Unmarshal(started.Config, &cfg); err != nil {
		return engine.Env{}, fmt.Errorf("launch: the run's configuration: %w", err)
	}
	o.nest(&env, &cfg.Plan)
	env.Worktrees = apart{o, root, started.Sandbox}
	if err := o.resumeCommands(&env, cfg.Policy, started.Sandbox, root); err != nil || !cfg.Plan.Refine {
		return env, err
	}
	if err := o.forLoop(&env, started.Source); err != nil {
		return engine.Env{}, assembly.Closing(env, err)
	}
	return env, nil
}
