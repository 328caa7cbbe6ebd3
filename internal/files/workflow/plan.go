package workflow

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// DefaultAgent is the name of the agent of steps that name none.
const DefaultAgent = "default agent"

// width is the default number of top-level steps that run at once.
const width = 5

// worktreePerStep is the isolation of steps that each have a git worktree.
const worktreePerStep = "worktree-per-step"

// plan returns the plan of the file. It reads the files that its steps name and
// includes their contents.
func (f *workflowFile) plan() plan.Plan {
	o := f.w.Options
	p := plan.Plan{
		Name: f.w.Name, OnFailure: o.onFailure(), Scheduler: o.scheduler(),
		Timeout: o.Timeout.Length(), Concurrency: decode.Given(o.MaxConcurrency), Worktrees: o.Isolation == worktreePerStep, Templates: true,
	}
	if p.Concurrency == 0 {
		p.Width = width
	}
	p.Steps = f.planSteps("steps", f.w.Steps)
	return p
}

func (o WorkflowOptions) onFailure() plan.OnFailure {
	if o.OnStepFailure == "cascade" {
		return plan.Cascade
	}
	return plan.OnFailure(o.OnStepFailure)
}

func (o WorkflowOptions) scheduler() plan.Scheduler {
	if o.Scheduler == "dependency-first" {
		return plan.DependencyFirst
	}
	return plan.Scheduler(o.Scheduler)
}

func (f *workflowFile) planSteps(path string, steps []WorkflowStep) []plan.Step {
	out := make([]plan.Step, len(steps))
	for i := range steps {
		out[i] = f.planStep(fmt.Sprintf("%s[%d]", path, i), &steps[i])
	}
	return out
}

func (f *workflowFile) planStep(path string, s *WorkflowStep) plan.Step {
	p := plan.Step{
		ID: s.ID, DependsOn: s.DependsOn, Condition: s.Condition, Retries: decode.Given(s.Retries),
		Timeout: s.Timeout.Length(),
	}
	if s.Loop != nil {
		p.Loop = f.planLoop(path, s)
		return p
	}
	p.Timeout = cmp.Or(p.Timeout, f.w.Options.StepTimeout.Length())
	switch included := f.included[path]; {
	case included != nil:
		inner := included.plan()
		p.Plan = &inner
	case len(s.Command) > 0:
		p.Command = &plan.Command{Argv: s.Command}
	case s.Workflow != "":
		p.Run = &plan.Run{Kind: "Workflow", Name: f.runName(s.Workflow), Instructions: s.text}
	default:
		p.Agent = f.planAgent(s)
	}
	return p
}

// planAgent returns the task of an agent: its instructions, or by default its
// purpose.
func (f *workflowFile) planAgent(s *WorkflowStep) *plan.Agent {
	name := f.use(s)
	return &plan.Agent{
		Name: name, Instructions: cmp.Or(s.text, f.uses[name].Identity.Description), Files: s.files, Result: f.uses[name].ResultSchema != nil,
	}
}

func (f *workflowFile) planLoop(path string, s *WorkflowStep) *plan.Loop {
	l := s.Loop
	p := &plan.Loop{
		Max: decode.Given(l.MaxIterations), Delay: l.Delay.Length(), JudgeFailuresMax: decode.Given(l.JudgeFailuresMax),
	}
	if l.Carry != nil {
		summarizer := f.named("summary of " + path)
		p.Carry = l.Carry.Plan(summarizer)
		if l.Carry.Summarizes() {
			f.uses[summarizer] = f.agent(s.Agent).Summarizer()
		}
	}
	if decode.Given(l.OutputMode) == string(plan.Cumulative) {
		p.Output = plan.Cumulative
	}
	if l.OnLimit != "fail" {
		p.OnLimit = plan.OnLimit(l.OnLimit)
	}
	if l.OnIterationError == "continue" {
		p.OnError = plan.IterationContinues
	}
	if l.Until != "" {
		p.StopWhen = append(p.StopWhen, plan.Stop{Expression: l.Until})
	}
	if l.UntilAgent != "" {
		p.StopWhen = append(p.StopWhen, plan.Stop{Judge: f.judge(l.UntilAgent)})
	}
	for i := range l.StopWhen {
		p.StopWhen = append(p.StopWhen, f.planStop(fmt.Sprintf("%s of %s", spec.JudgeName(i), path), s, &l.StopWhen[i]))
	}
	if l.ForEach != nil {
		p.Items = planItems(l)
	}
	if p.Single = len(l.Steps) == 0; p.Single {
		inner := *s
		inner.ID, inner.DependsOn, inner.Condition, inner.Retries, inner.Timeout, inner.Loop = "", nil, "", nil, nil, nil
		p.Body.Steps = []plan.Step{f.planStep(path, &inner)}
		return p
	}
	p.Body.Steps = f.planSteps(path+".loop.steps", l.Steps)
	p.Body.OnFailure, p.Body.Scheduler = f.w.Options.onFailure(), f.w.Options.scheduler()
	return p
}

func (f *workflowFile) planStop(judge string, s *WorkflowStep, stop *spec.RefineStop) plan.Stop {
	p := plan.Stop{Expression: stop.CEL, Regex: stop.Regex}
	p.Eval, _ = stop.Evaluator()
	if j := stop.Judge; j != nil && j.Agent != "" {
		p.Judge = f.judge(j.Agent)
	} else if of := f.agent(s.Agent).JudgeOf(stop); of != nil {
		p.Judge = f.named(judge)
		f.uses[p.Judge] = of
	}
	if stop.Command != nil {
		p.Command = &plan.Command{Argv: stop.Command.Argv, Timeout: stop.Command.Timeout.Length()}
	}
	if stop.Human != nil {
		p.Human = &plan.Human{Prompt: stop.Human.Prompt}
	}
	return p
}

func planItems(l *WorkflowLoop) *plan.Items {
	p := &plan.Items{
		Static: l.ForEach.Items, Expression: strings.TrimSpace(l.ForEach.Expression), Max: maxItems, Concurrency: decode.Given(l.MaxConcurrency),
	}
	if l.MaxItems != nil {
		p.Max = *l.MaxItems
	}
	if l.OnItemError != "fail_fast" {
		p.OnError = plan.OnItemError(l.OnItemError)
	}
	if m := l.MinSuccess; m != nil {
		p.MinSuccess, p.MinSuccessPercent = m.Items, m.Percent
	}
	return p
}

// useName returns the plan's name for the agent of a step: the agent's name, with a
// suffix if the step changes it.
func (f *workflowFile) useName(s *WorkflowStep) string {
	name := cmp.Or(s.Agent, DefaultAgent)
	if s.Model != "" {
		name += " with " + s.Model
	}
	if retries := f.retries(s); retries > 0 {
		name += fmt.Sprintf(" with %d retries", retries)
	}
	return f.named(name)
}

func (f *workflowFile) retries(s *WorkflowStep) int {
	return cmp.Or(decode.Given(s.MaxRetries), decode.Given(f.w.Options.MaxRetries))
}

// use adds the agent of a step to those of the plan.
func (f *workflowFile) use(s *WorkflowStep) string {
	name, retries := f.useName(s), f.retries(s)
	if f.uses[name] != nil {
		return name
	}
	a := f.agent(s.Agent)
	if s.Model != "" {
		a.ModelPolicy.Primary = spec.Model{Model: f.bare(s.Model)}
		a.ModelPolicy.Fallbacks, a.ModelPolicy.Roles, a.ModelPolicy.Role, a.Role = nil, spec.Roles{}, "", ""
	}
	if retries > 0 {
		a.Budgets.MaxToolRetries = &retries
	}
	f.uses[name] = a
	return name
}

// judge returns the plan's name for an agent that ends loops. It has no tools there,
// because it only returns its verdict.
func (f *workflowFile) judge(agent string) string {
	s := &WorkflowStep{Agent: agent}
	_, before := f.uses[f.useName(s)]
	name := f.use(s)
	a := *f.uses[name]
	if a.Tools.Allow != nil && len(a.Tools.Allow)+len(a.Tools.Agents)+len(a.Tools.Provider) == 0 {
		return name
	}
	if !before {
		delete(f.uses, name)
	}
	a.Tools = spec.Tools{Allow: spec.Names{}}
	name += " without tools"
	f.uses[name] = &a
	return name
}

// agent returns an agent of the plan, the default one for "".
func (f *workflowFile) agent(name string) *spec.Agent {
	o := f.owner(name)
	w := o.w.Agents[name]
	switch {
	case w == nil:
		a := &spec.Agent{Identity: spec.Identity{Name: DefaultAgent}, Dir: f.w.Dir, File: f.w.File}
		a.ModelPolicy.Primary.Model = f.options.Classes["default"]
		a.Tools.Permissions = f.w.Permissions
		return a
	case w.AgentFile != "":
		a, err := o.agentFile(w)
		if err != nil { // reported where the file is named
			return &spec.Agent{}
		}
		a.Identity.Name = cmp.Or(a.Identity.Name, name)
		return a
	}
	return o.built(name, w)
}
