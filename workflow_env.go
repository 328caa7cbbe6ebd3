package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/tool"
)

const flowKind = flow.Kind

// workflow is a Workflow that is ready to run. Its runs share it and do not change
// it.
type workflow struct {
	Workflow
	cfg      flow.Config
	warnings []string
	// children holds what its steps start, including those of nested workflows, and
	// values the functions that replace expressions.
	children map[string]perform.Child
	below    map[string]*workflow
	values   map[string]func(Values) (any, error)
}

// prepare returns what all runs of the workflow share. child reports that another run
// starts them.
func (w Workflow) prepare(child bool) (*workflow, error) {
	var problems []error
	report := func(field, format string, args ...any) {
		problems = append(problems, &InvalidWorkflowError{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	p := &workflow{Workflow: w, children: map[string]perform.Child{}, below: map[string]*workflow{}}
	b := newPlanner(w, report)
	p.cfg.Plan, p.values = b.plan(), b.values
	if deep := w.depth(MaxDepth); deep > MaxDepth {
		report("Steps", "a tree of runs is at most %d deep, and this one could be %d", MaxDepth, deep)
		return nil, errors.Join(problems...)
	}
	p.offerAgents(report)
	for name, step := range b.functions {
		p.children[name] = function(step)
	}
	for _, name := range slices.Sorted(maps.Keys(b.workflows)) {
		p.offerWorkflow(name, b.workflows[name], report)
	}
	p.limit(child, report)
	commands, err := tool.NewSet(Tool(machine.CommandTool, "", func(context.Context, struct{}) (string, error) { return "", nil }))
	if err != nil {
		return nil, fmt.Errorf("pawl: workflow: %w", err)
	}
	w.Permissions.check(commands, report)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return p, nil
}

// depth returns the maximum depth of the tree of a run of the workflow. It searches at
// most most levels, because a workflow may contain itself.
func (w Workflow) depth(most int) int {
	below := 0
	for _, a := range w.Agents {
		below = max(below, a.depth())
	}
	var look func([]Step)
	look = func(steps []Step) {
		for _, s := range steps {
			if s.Workflow != nil && most > 0 {
				below = max(below, s.Workflow.depth(most-1))
			}
			if look(s.Steps); s.Loop != nil {
				look(s.Loop.Steps)
			}
		}
	}
	look(w.Steps)
	return 1 + below
}

func (p *workflow) offerAgents(report func(field, format string, args ...any)) {
	for _, o := range p.tools() {
		_, offered, err := o.Agent.offered()
		for _, wrong := range problems(err) {
			report(fmt.Sprintf("Agents[%q].%s", o.Name, wrong.Field), "%s", wrong.Reason)
		}
		if err == nil {
			p.children[o.Name] = offered.Child()
		}
	}
}

func (p *workflow) offerWorkflow(name string, w placed, report func(field, format string, args ...any)) {
	inner, err := w.prepare(true)
	for _, e := range parts(err) {
		if wrong, ok := errors.AsType[*InvalidWorkflowError](e); ok {
			report(w.field+"."+wrong.Field, "%s", wrong.Reason)
		}
	}
	if err != nil {
		return
	}
	p.below[name] = inner
	p.children[name] = assembly.Agent{
		Secrets: inner.allSecrets(),
		Begin: func(_ string, input event.InputReceived) (event.RunStarted, perform.Env, error) {
			started, err := inner.start(input.Text)
			return started, inner.env(), err
		},
		Resume: func(string, event.RunStarted) (perform.Env, error) { return inner.env(), nil },
	}.Child()
}

// function adapts a step's function to the engine.
func function(s *Step) perform.Child {
	return perform.Child{Func: func(ctx context.Context, input json.RawMessage) (Output, error) {
		var v Values
		if err := json.Unmarshal(input, &v); err != nil {
			return Output{}, fmt.Errorf("what the step knows: %w", err)
		}
		return s.Func(ctx, v)
	}}
}

// limit sets the default limits of the tree.
func (p *workflow) limit(child bool, report func(field, format string, args ...any)) {
	cfg := agent.Config{Limits: p.Limits, UnpricedBelow: p.unpriced()}
	checkLimits(p.Limits, report)
	if !child {
		cfg = assembly.OfTree(cfg)
	}
	if err := assembly.Affordable(cfg); err != nil {
		report("Limits", "%s: name the price of each model, or take the limit away", strings.TrimPrefix(err.Error(), "budget: "))
	}
	p.cfg.Limits, p.warnings = cfg.Limits, assembly.Warnings(cfg)
}

// unpriced returns the models without a price of all agents of the tree.
func (p *workflow) unpriced() []string {
	names := Agent{Agents: p.tools()}.unpricedBelow()
	for _, inner := range p.below {
		names = append(names, inner.unpriced()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (p *workflow) secrets() *secret.Redactor { return secret.NewRedactor(p.allSecrets()...) }

func (p *workflow) allSecrets() []secret.Secret {
	all := Agent{Agents: p.tools()}.allSecrets()
	for _, inner := range p.below {
		all = append(all, inner.allSecrets()...)
	}
	return all
}

// start returns the first event of a run.
func (p *workflow) start(input string) (event.RunStarted, error) {
	started, err := begins(p.cfg, input)
	started.Warnings = p.warnings
	return started, err
}

// env returns the environment of a run, which the caller may change.
func (p *workflow) env() perform.Env {
	r := p.Permissions.rules()
	if p.NeverAsk {
		r.Open = []string{machine.CommandTool}
	}
	return perform.Env{Children: maps.Clone(p.children), Evaluate: p.evaluate, Commands: p.Commands, Rules: r, Secrets: p.secrets()}
}

// evaluate calls the function that replaces an expression, or evaluates it.
func (p *workflow) evaluate(ctx context.Context, expression string, variables json.RawMessage) (json.RawMessage, error) {
	f := p.values[expression]
	switch {
	case f != nil:
	case strings.HasPrefix(expression, goFunction) || p.Expressions == nil:
		return nil, fmt.Errorf("there is no %s in this workflow", expression)
	default:
		return p.Expressions(ctx, expression, variables)
	}
	var v Values
	if err := json.Unmarshal(variables, &v); err != nil {
		return nil, fmt.Errorf("what the step knows: %w", err)
	}
	out, err := f(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// guardJournal returns an error if a tool of an agent may write the files of a journal
// without asking.
func (p *workflow) guardJournal(store journal.Store) error {
	if err := (Agent{Agents: p.tools()}).guardJournal(store, p.Permissions.rules()); err != nil {
		return err
	}
	for _, inner := range p.below {
		if err := inner.guardJournal(store); err != nil {
			return err
		}
	}
	return nil
}

// mayResume returns an error if a run cannot resume here, and checks the runs below it
// in the same way.
func (p *workflow) mayResume(ctx context.Context, store journal.Store, env perform.Env, started event.RunStarted) error {
	if started.Machine != flow.Version {
		return fmt.Errorf("it is no run of a workflow (%s)", started.Machine)
	}
	var cfg flow.Config
	if err := json.Unmarshal(started.Config, &cfg); err != nil {
		return fmt.Errorf("the plan that the run began with: %w", err)
	}
	if missing := p.missing(&cfg.Plan); len(missing) > 0 {
		return fmt.Errorf("the plan that it began with needs what this workflow lacks: %s", strings.Join(missing, ", "))
	}
	guardChildren(ctx, store, env, p.tools())
	for name, inner := range p.below {
		child := env.Children[name]
		resume := child.Resume
		child.Resume = func(run string, started event.RunStarted) (perform.Env, error) {
			env, err := resume(run, started)
			if err == nil {
				err = inner.mayResume(ctx, store, env, started)
			}
			return env, err
		}
		env.Children[name] = child
	}
	return p.guardJournal(store)
}

// missing returns the names in a plan that the workflow does not define.
func (p *workflow) missing(of *plan.Plan) (names []string) {
	child := func(name string) {
		if _, there := p.children[name]; name != "" && !there {
			names = append(names, name)
		}
	}
	expression := func(text string) {
		if _, there := p.values[text]; strings.HasPrefix(text, goFunction) && !there {
			names = append(names, text)
		}
	}
	of.Each(func(s *plan.Step) {
		expression(s.Condition)
		switch {
		case s.Agent != nil:
			child(s.Agent.Name)
		case s.Func != nil:
			child(s.Func.Name)
		case s.Run != nil:
			child(s.Run.Name)
		case s.Loop != nil:
			if s.Loop.Items != nil {
				expression(s.Loop.Items.Expression)
			}
			for _, stop := range s.Loop.StopWhen {
				expression(stop.Expression)
				child(stop.Judge)
			}
		}
	})
	return names
}
