package launch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/expr"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/files/workflow"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/tool"
)

// childrenAtWork bounds the runs of one tree that work at once.
const childrenAtWork = 64

// WorkflowFiles is the kind of files that describe a graph of steps.
func WorkflowFiles() Kind {
	return Kind{
		Name: flow.Kind, Recognises: spec.Heading.Workflow,
		Check: CheckWorkflow, Signature: workflowSignature, Launch: Workflow, Resume: resumeWorkflow, Redactor: workflowRedactor, Plan: planOf, Fork: forkAsIs, Limits: limitsOfWorkflow,
		Templates: []Template{{
			Name: "develop", About: "a workflow: changes code until its tests pass, then reviews it", Task: "Make the tests pass.",
			File: "workflow.yaml", Workspace: "demo",
		}},
	}
}

// parseWorkflow reads a workflow for checks and runs. A setting without an
// implementation is an error, because the workflow would not do what its file
// describes.
func parseWorkflow(f File, o Options) (*workflow.Workflow, error) {
	w, err := parseAnyWorkflow(f, o)
	if err == nil && len(w.Unbuilt) > 0 {
		return nil, w.Unbuilt
	}
	return w, err
}

func parseAnyWorkflow(f File, o Options) (*workflow.Workflow, error) {
	rules := o.checksOf(f)
	rules.FindModel = findModel
	return workflow.Parse(f.Path, f.Text, rules)
}

func limitsOfWorkflow(path string, text []byte) (*spec.Agent, error) {
	w, err := workflow.Restore(path, text)
	if err != nil {
		return nil, err
	}
	return w.Limits(), nil
}

// findModel adds the provider to the name of a model.
func findModel(name string) (string, bool) {
	table, err := models.Known()
	if err != nil {
		return "", false
	}
	return table.Find(name)
}

// CheckWorkflow validates a workflow file as a run would, without a workspace, a
// key or a call. The error is [decode.Errors] when the file is there and wrong.
func CheckWorkflow(f File, o Options) ([]decode.Problem, error) {
	o.checking = true
	w, err := parseWorkflow(f, o)
	if err != nil {
		return nil, err
	}
	o.MaxDepth = cmp.Or(o.MaxDepth, value(w.MaxDepth))
	if root := w.Limits(); o.gatherUses(root, w.Uses) == nil {
		w.Warnings = append(w.Warnings, ofFile(f.Path, o.tooDeep(root, w.Plan))...)
	}
	return append(w.Warnings, w.Unseen...), nil
}

// planOf returns the plan of a workflow file, even if it cannot run.
func planOf(f File, o Options) (plan.Plan, error) {
	w, err := parseAnyWorkflow(f, o)
	if err != nil {
		return plan.Plan{}, err
	}
	return w.Plan, nil
}

// Workflow prepares a run of a workflow file.
func Workflow(f File, input string, o Options) (started event.RunStarted, env perform.Env, err error) {
	switch {
	case len(o.Attachments) > 0:
		return started, env, errors.New("launch: a workflow takes no attachments; its steps have contextFiles")
	case len(o.Vars) > 0:
		return started, env, errors.New("launch: a workflow has no variables; what is to be said to it is its input")
	}
	w, err := parseWorkflow(f, o)
	if err != nil {
		return started, env, err
	}
	o.MaxDepth = cmp.Or(o.MaxDepth, value(w.MaxDepth))
	if started, env, err = o.startFile(f, w.Plan, w.Limits(), w.Uses, input); err != nil {
		return started, env, err
	}
	if strings.TrimSpace(input) != "" {
		w.Warnings = append(w.Warnings, w.Unseen...)
	}
	started.Warnings = slices.Concat(messagesOf(w.Warnings), inWorkflow(started.Warnings))
	return started, env, nil
}

// startFile prepares the run of a file whose plan names the agents that root
// offers.
func (o Options) startFile(f File, p plan.Plan, root *spec.Agent, uses map[string]*spec.Agent, input string) (started event.RunStarted, env perform.Env, err error) {
	source := ""
	if !f.Sent {
		source = spec.Absolute(f.Path)
	}
	if err := recordable(source, o.Dir, o.Workspace); err != nil {
		return started, env, err
	}
	o.forAgents = o.limitsOfAgents()
	if err := o.gatherUses(root, uses); err != nil {
		return started, env, err
	}
	if strings.TrimSpace(input) == "" && idle(&p) {
		return started, env, ErrNoInput
	}
	started, env, err = o.startPlan(p, root, input)
	started.Source, started.Spec = source, string(f.Text)
	return started, env, err
}

// startPlan prepares the run of a plan, whose agents root offers.
func (o Options) startPlan(p plan.Plan, root *spec.Agent, input string) (event.RunStarted, perform.Env, error) {
	fail := func(err error) (event.RunStarted, perform.Env, error) { return event.RunStarted{}, perform.Env{}, err }
	cfg, err := o.workflowLimits(root)
	if err != nil {
		return fail(err)
	}
	env, err := o.workflowEnv(root)
	if err != nil {
		return fail(err)
	}
	task := event.InputReceived{Text: input, Media: o.Attachments}.Message()
	atWork := childrenAtWork
	if o.MaxConcurrency > 0 {
		atWork = min(atWork, o.MaxConcurrency)
	}
	o.nest(&env, &p)
	env.Worktrees = stepWorktrees{o, root, ""}
	rules, err := o.runCommands(&env, &p, root)
	if err != nil {
		return fail(err)
	}
	if p.Refine {
		if err := errors.Join(o.forLoop(&env, root.File), o.onlyAnswers(&p, root)); err != nil {
			return fail(assembly.Closing(env, err))
		}
	}
	started, err := flow.Start(flow.Config{Plan: p, Tree: treeAtStart(env), Limits: cfg.Limits, OnBudget: actions(root.Budgets), Concurrency: atWork, Policy: rules}, task)
	if err != nil {
		return fail(assembly.Closing(env, err))
	}
	if rules != nil {
		o.confined.pin(&started)
	}
	started.Workspace, started.Options, started.MaxDepth = o.Workspace, o.record(root), o.MaxDepth
	o.pinAgents(&started)
	started.Warnings = slices.Concat(o.tooDeep(root, p), assembly.Removed(slices.DeleteFunc(cfg.Limits.Lacks(), func(name string) bool { return !ofTree(name) }), o.started), money(cfg))
	return started, env, nil
}

// messagesOf returns the texts of problems.
func messagesOf(problems []decode.Problem) []string {
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.String()
	}
	return texts
}

// idle reports whether a top-level step would have nothing to do without an input.
func idle(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Steps, func(s plan.Step) bool {
		return s.Agent != nil && s.Agent.Instructions == "" && len(s.Agent.Files) == 0 && len(s.DependsOn) == 0
	})
}

// byTool reports whether a run returns its result through a tool, as the agents of
// workflows do.
func (o Options) byTool(a *spec.Agent) bool {
	source := spec.SourceOf(o.source)
	return a.ResultSchema != nil && source.Within() && source.Name() != spec.LoopBody
}

// messages returns the tools with which an agent of a workflow sends messages, if
// the workflow has a coordinator. A judge sends none.
func (o Options) messages(a *spec.Agent) []tool.Tool {
	own := spec.SourceOf(o.source)
	coordinator := workflow.CoordinatorBeside(own.Agent)
	switch {
	case !own.Within() || workflow.Judges(a):
		return nil
	case own.Agent == coordinator:
		return tool.ForCoordinator()
	}
	for source := range o.tree.files {
		if spec.SourceOf(source).Name() == coordinator {
			return tool.ForSteps()
		}
	}
	return nil
}

// gatherUses pins the agents of a plan and the agents that they offer. root stands
// for the workflow's run: an agent that offers them all and has no tools itself.
func (o *Options) gatherUses(root *spec.Agent, uses map[string]*spec.Agent) error {
	files := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		a := uses[name]
		text, err := a.Text()
		if err != nil {
			return err
		}
		source := spec.SourceOf(filepath.Join(spec.Absolute(a.Dir), a.File)).Of(name).String()
		files[source] = string(text)
		within := *a
		within.File = spec.SourceOf(a.File).Of(name).String()
		if err := o.gatherFrom(&within, files); err != nil {
			return err
		}
	}
	o.tree = newTree(files)
	o.offerUses(root)
	return nil
}

// offerUses lets an agent offer the pinned agents of a workflow.
func (o *Options) offerUses(root *spec.Agent) {
	root.Tools.Allow = spec.Names{}
	for _, source := range slices.Sorted(maps.Keys(o.tree.files)) {
		if s := spec.SourceOf(source); s.Within() && !s.Nested() {
			root.Tools.Agents = append(root.Tools.Agents, spec.AgentTool{Name: s.Agent, Description: s.Agent, File: source})
		}
	}
}

// workflowLimits returns the limits of a workflow's tree: those of the file and the
// flags, and the defaults in money and time. All other defaults apply to each
// agent.
func (o Options) workflowLimits(root *spec.Agent) (agent.Config, error) {
	cfg := agent.Config{Limits: limits(root)}
	if !o.started {
		cfg = assembly.OfTree(cfg)
	}
	for _, t := range root.Offers() {
		source := t.Source(root.Dir)
		a, err := o.pinnedAgent(source)
		if err != nil {
			return cfg, fmt.Errorf("launch: %w", err)
		}
		targets, err := o.targetsOf(source, a, o.resolver(a.Dir))
		if err != nil {
			return cfg, fmt.Errorf("the agent %s: %w", t.Name, err)
		}
		for _, target := range targets {
			if !slices.ContainsFunc(cfg.Targets, func(known agent.Target) bool { return known.Model == target.Model }) {
				cfg.Targets = append(cfg.Targets, target.Target)
			}
		}
	}
	var err error
	if cfg.UnpricedBelow, err = o.unpricedBelow(root); err != nil {
		return cfg, err
	}
	o.Limits = slices.DeleteFunc(slices.Clone(o.Limits), perAgent)
	if err := o.replace(&cfg); err != nil {
		return cfg, err
	}
	return cfg, affordable(cfg)
}

// inWorkflow replaces the keys of an agent file by those of a workflow.
func inWorkflow(warnings []string) []string {
	for i, w := range warnings {
		warnings[i] = strings.ReplaceAll(w, "model_policy.budget.", "budget.")
	}
	return warnings
}

// ofTree reports whether the default of a limit applies to a workflow's tree.
func ofTree(name string) bool {
	s, _ := budget.Find(name)
	return s.Kind == budget.Money || s.Kind == budget.Time
}

// limitsOfAgents returns the flags that replace limits of each agent.
func (o Options) limitsOfAgents() []Limit {
	return slices.DeleteFunc(slices.Clone(o.Limits), func(l Limit) bool { return !perAgent(l) })
}

// perAgent reports whether a limit applies to each agent, not to the workflow.
func perAgent(l Limit) bool { return l.Setting == budget.CycleCap }

// workflowEnv returns the environment of a workflow.
func (o Options) workflowEnv(root *spec.Agent) (perform.Env, error) {
	agents, err := o.offers(root)
	if err != nil {
		return perform.Env{}, err
	}
	below, err := o.secretsBelow(root.Offers(), root.Dir)
	if err != nil {
		return perform.Env{}, err
	}
	env := perform.Env{Children: map[string]perform.Child{}, Evaluate: expr.New().Evaluate, Secrets: secret.NewRedactor(below...)}
	for _, a := range agents {
		env.Children[a.Tool.Name] = a.Child()
	}
	return env, nil
}

// resumeWorkflow returns the environment of a resumed workflow.
func resumeWorkflow(started event.RunStarted, o Options) (perform.Env, error) {
	w, err := workflow.Restore(started.Source, []byte(started.Spec))
	if err != nil {
		return perform.Env{}, fmt.Errorf("launch: the run's workflow file: %w", err)
	}
	return resumeUses(started, w.Limits(), o)
}

// resumeUses returns the environment of a resumed run whose agents are all pinned
// in its first event.
func resumeUses(started event.RunStarted, root *spec.Agent, o Options) (perform.Env, error) {
	o = o.seams().pinned(started)
	if err := checkWorkspace(o.Workspace); err != nil {
		return perform.Env{}, err
	}
	root.Dir = started.Options["files"]
	o.offerUses(root)
	return o.resumePlan(root, started)
}

// workflowRedactor is [Redactor] for a workflow: a step may find a secret of
// another step's agent.
func workflowRedactor(started event.RunStarted) (r *secret.Redactor, missing []string, err error) {
	var all []secret.Secret
	for _, f := range started.Agents {
		a, err := spec.Restore(f.Source, []byte(f.Spec))
		if err != nil {
			return nil, nil, fmt.Errorf("launch: the agent file %s: %w", f.Source, err)
		}
		found, lost := known(a)
		all, missing = append(all, found...), append(missing, lost...)
	}
	return secret.NewRedactor(all...), missing, nil
}
