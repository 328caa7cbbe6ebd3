package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// KindGoal is the kind of the runs of goal files.
const KindGoal = "Goal"

// GoalFiles is the kind of files that describe a goal: a loop around one agent, until
// what shows that the objective is reached holds.
func GoalFiles() Kind {
	return Kind{
		Name: KindGoal, Recognises: spec.Heading.Goal,
		Check: checkGoal, Launch: Goal, Resume: resumeGoal, Redactor: workflowRedactor, Plan: planOfGoal, Explain: explainGoal, Call: callOfGoal, Fork: forkAsIs, Limits: limitsOfGoal,
		Templates: []Template{{
			Name: "goal", About: "a goal: one objective, and what shows that it is reached", File: "goal.yaml", Workspace: "demo",
		}},
	}
}

func limitsOfGoal(path string, text []byte) (*spec.Agent, error) {
	g, err := spec.RestoreGoal(path, text)
	if err != nil {
		return nil, err
	}
	return g.Limits(), nil
}

func parseGoal(f File, o Options) (*spec.Goal, error) {
	if f.Sent {
		return nil, errors.New("launch: a goal names programs of this machine, so it cannot be sent as a text; put its file into the agents directory")
	}
	return spec.ParseGoal(f.Path, f.Text, o.checks())
}

func checkGoal(f File, o Options) ([]spec.Problem, error) {
	o.checking = true
	g, err := parseGoal(f, o)
	if err != nil {
		return nil, err
	}
	return g.Warnings, nil
}

func planOfGoal(f File, o Options) (plan.Plan, error) {
	g, err := parseGoal(f, o)
	if err != nil {
		return plan.Plan{}, err
	}
	return g.Steps, nil
}

// Goal prepares a run of a goal file. It needs no input: the objective is in the file.
func Goal(f File, input string, o Options) (started event.RunStarted, env engine.Env, err error) {
	switch {
	case len(o.Attachments) > 0:
		return started, env, errors.New("launch: a goal takes no attachments")
	case len(o.Vars) > 0:
		return started, env, errors.New("launch: a goal has no variables; what is to be said to it is its input")
	}
	g, err := parseGoal(f, o)
	if err != nil {
		return started, env, err
	}
	if started, env, err = o.startFile(f, g.Steps, g.Limits(), g.Uses, input); err != nil {
		return started, env, err
	}
	started.Kind, started.Warnings = KindGoal, slices.Concat(said(g.Warnings), started.Warnings)
	return started, env, nil
}

// resumeGoal gives the environment of a goal that goes on. What its commands may do
// is in the agent file where that says it.
func resumeGoal(started event.RunStarted, o Options) (engine.Env, error) {
	g, err := spec.RestoreGoal(started.Source, []byte(started.Spec))
	if err != nil {
		return engine.Env{}, fmt.Errorf("launch: the run's goal file: %w", err)
	}
	root := g.Limits()
	for _, f := range started.Agents {
		if g.Agent == "" || !strings.HasSuffix(f.Source, agentOf+spec.GoalWorker) {
			continue
		}
		worker, err := spec.Restore(f.Source, []byte(f.Spec))
		if err != nil {
			return engine.Env{}, fmt.Errorf("launch: the agent file %s: %w", f.Source, err)
		}
		root.Tools = worker.CommandTools()
	}
	return resumeUses(started, root, o)
}
