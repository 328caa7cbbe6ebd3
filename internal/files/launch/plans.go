package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/files/workflow"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// KindGoal is the kind of the runs of goal files.
const KindGoal = "Goal"

// GoalFiles is the kind of files that describe a goal: a loop around one agent that
// ends when its checks show that the objective is reached.
func GoalFiles() Kind {
	return Kind{
		Name: KindGoal, Recognises: spec.Heading.Goal,
		Check: checkGoal, Signature: goalSignature, Launch: Goal, Resume: resumeGoal, Redactor: workflowRedactor, Plan: planOfGoal, Explain: explainGoal, Call: callOfGoal, Fork: forkAsIs, Limits: limitsOfGoal,
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
	return spec.ParseGoal(f.Path, f.Text, o.Checks())
}

func checkGoal(f File, o Options) ([]decode.Problem, error) {
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
func Goal(f File, input string, o Options) (started event.RunStarted, env perform.Env, err error) {
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
	started.Kind, started.Warnings = KindGoal, slices.Concat(messagesOf(g.Warnings), started.Warnings)
	return started, env, nil
}

// resumeGoal returns the environment of a resumed goal. If the agent file has
// permissions of commands, they apply to the goal's commands.
func resumeGoal(started event.RunStarted, o Options) (perform.Env, error) {
	g, err := spec.RestoreGoal(started.Source, []byte(started.Spec))
	if err != nil {
		return perform.Env{}, fmt.Errorf("launch: the run's goal file: %w", err)
	}
	root := g.Limits()
	for _, f := range started.Agents {
		if g.Agent == "" || spec.SourceOf(f.Source).Name() != spec.GoalWorker {
			continue
		}
		worker, err := spec.Restore(f.Source, []byte(f.Spec))
		if err != nil {
			return perform.Env{}, fmt.Errorf("launch: the agent file %s: %w", f.Source, err)
		}
		root.Tools = worker.CommandTools()
	}
	return resumeUses(started, root, o)
}

// Kinds of runs of agent files that start other runs: teams have composite, and
// refinement loops have loop.
const (
	KindTeam = "Team"
	KindLoop = "Loop"
)

// TeamFiles is the kind of agent files that describe a team.
func TeamFiles() Kind {
	return Kind{
		Name: KindTeam, Recognises: spec.Heading.Team,
		Check: Check, Signature: signature, Launch: Agent, Resume: Environment, Redactor: workflowRedactor, Plan: planOfAgent,
	}
}

// LoopFiles is the kind of agent files with a refinement loop.
func LoopFiles() Kind {
	return Kind{
		Name: KindLoop, Recognises: spec.Heading.Loop,
		Check: Check, Signature: signature, Launch: Agent, Resume: Environment, Redactor: workflowRedactor, Plan: planOfAgent, Explain: Explain, Call: CallProgram, Fork: forkAsIs,
	}
}

// planOfAgent returns the plan of such a file.
func planOfAgent(f File, o Options) (plan.Plan, error) {
	a, err := spec.ParseAgent(f.Path, f.Text, o.checksOf(f))
	if err != nil {
		return plan.Plan{}, err
	}
	return a.Plan(), nil
}

// ofPlan prepares a run of an agent file that starts other runs: a team or a
// refinement loop.
func ofPlan(a *spec.Agent, source string, text []byte, input string, o Options) (event.RunStarted, perform.Env, error) {
	fail := func(err error) (event.RunStarted, perform.Env, error) { return event.RunStarted{}, perform.Env{}, err }
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
	started.Warnings = append(messagesOf(a.Warnings), started.Warnings...)
	if a.Loops() {
		started.Warnings = append(started.Warnings, ungoverned(a.Loop.Runner)...)
	}
	return started, env, nil
}

// resumePlan returns the environment of a resumed plan, whose agents root offers.
func (o Options) resumePlan(root *spec.Agent, started event.RunStarted) (perform.Env, error) {
	env, err := o.workflowEnv(root)
	if err != nil {
		return perform.Env{}, err
	}
	var cfg flow.Config
	if err := json.Unmarshal(started.Config, &cfg); err != nil {
		return perform.Env{}, fmt.Errorf("launch: the run's configuration: %w", err)
	}
	o.nest(&env, &cfg.Plan)
	env.Worktrees = stepWorktrees{o, root, started.Sandbox}
	if err := o.resumeCommands(&env, cfg.Policy, started.Sandbox, root); err != nil || !cfg.Plan.Refine {
		return env, err
	}
	if err := o.forLoop(&env, started.Source); err != nil {
		return perform.Env{}, assembly.Closing(env, err)
	}
	return env, nil
}

// nest lets an environment start the workflows that are steps of a plan.
func (o Options) nest(env *perform.Env, p *plan.Plan) {
	for name, inner := range p.Runs {
		child := o.inner(inner).Child()
		child.Secrets = env.Secrets
		env.Children[name] = child
	}
}

// inner returns a workflow as a child run. It uses the text that was pinned when
// the root run began.
func (o Options) inner(p plan.Inner) assembly.Agent {
	depth := 0
	w, wrong := workflow.Restore(p.File.Path, []byte(p.File.Text))
	if wrong == nil {
		o, depth = o.below(), value(w.MaxDepth)
	}
	return assembly.Agent{
		MaxDepth: depth,
		Begin: func(_ string, input event.InputReceived) (event.RunStarted, perform.Env, error) {
			fail := func(err error) (event.RunStarted, perform.Env, error) { return event.RunStarted{}, perform.Env{}, err }
			if wrong != nil {
				return fail(wrong)
			}
			o := o
			o.forAgents = o.limitsOfAgents()
			root := w.Limits()
			o.offerUses(root)
			if strings.TrimSpace(input.Text) == "" && idle(&p.Plan) {
				return fail(ErrNoInput)
			}
			started, env, err := o.startPlan(p.Plan, root, input.Text)
			if err != nil {
				return fail(err)
			}
			started.Source, started.Spec, started.MaxDepth = p.File.Path, p.File.Text, 0
			started.Warnings = inWorkflow(started.Warnings)
			return started, o.dressed(env), nil
		},
		Resume: func(_ string, started event.RunStarted) (perform.Env, error) {
			env, err := resumeWorkflow(started, o)
			if err != nil {
				return env, err
			}
			return o.dressed(env), nil
		},
	}
}

// runner returns the agent that stands for a plan's commands in policy and sandbox:
// it has only shell.exec, under the permissions of the workflow.
func runner(root *spec.Agent) *spec.Agent {
	a := *root
	a.Tools = spec.Tools{Allow: spec.Names{shellTool}, Permissions: root.Tools.Permissions}
	return &a
}

// runCommands lets an environment run the commands of a plan, in their own sandbox.
// The rules are nil if the plan has no commands.
func (o *Options) runCommands(env *perform.Env, p *plan.Plan, root *spec.Agent) (*policy.Rules, error) {
	if !p.HasCommands() {
		return nil, nil
	}
	a := runner(root)
	o.nested = nestedFor(a, o.Workspace, o.tree.builtin())
	rules := o.permissions(a)
	return &rules, o.confineCommands(env, a, rules, "")
}

// resumeCommands does the same for a resumed run, with the rules it began with and
// in no weaker sandbox.
func (o *Options) resumeCommands(env *perform.Env, rules *policy.Rules, tier string, root *spec.Agent) error {
	if rules == nil {
		return nil
	}
	if err := o.guarded(*rules); err != nil {
		return err
	}
	o.nested.patterns, o.protected = rules.Nested, rules.Protected
	return o.confineCommands(env, runner(root), *rules, tier)
}

func (o *Options) confineCommands(env *perform.Env, a *spec.Agent, rules policy.Rules, tier string) (err error) {
	if o.confined, err = o.confine(a, tier); err != nil {
		return err
	}
	env.Commands, env.Rules, env.Close = shell.Commands(o.programs(a, rules)), rules, o.closeBox
	return nil
}

// Signature describes the input and the result of a run of a file.
type Signature struct {
	// Vars are the variables that a run needs; TaskVars are those of the file's own
	// task, which only a run without an input needs.
	Vars, TaskVars []string
	// InputOptional reports that a run has something to do without an input.
	InputOptional bool
	// Result is the JSON Schema of the result; nil for a text.
	Result json.RawMessage
	// ReadOnly reports that no tool, hook or command of a run can change anything.
	ReadOnly bool
	Shape
}

// signature returns the [Signature] of an agent file, including a team or a loop.
func signature(f File, o Options) (Signature, error) {
	o.checking = true
	a, err := spec.ParseAgent(f.Path, f.Text, o.checksOf(f))
	if err != nil {
		return Signature{}, err
	}
	s := Signature{Vars: a.Variables(), TaskVars: a.TaskVariables(), InputOptional: a.Prompt.Task != ""}
	if a.ResultSchema != nil && !a.StartsOthers() {
		s.Result = a.ResultSchema.JSON
	}
	s.Shape = o.shape(a, a)
	s.ReadOnly, err = o.readOnly(a, map[string]bool{})
	if a.StartsOthers() {
		p := a.Plan()
		s.ReadOnly = s.ReadOnly && !acts(&p)
	}
	return s, err
}

// workflowSignature returns the [Signature] of a workflow file.
func workflowSignature(f File, o Options) (Signature, error) {
	o.checking = true
	w, err := parseWorkflow(f, o)
	if err != nil {
		return Signature{}, err
	}
	s := Signature{InputOptional: !idle(&w.Plan), Shape: o.shape(w.Limits(), nil)}
	s.ReadOnly, err = o.readOnlyPlan(&w.Plan, w.Uses)
	s.ReadOnly = s.ReadOnly && w.Hooks == nil
	return s, err
}

// goalSignature returns the [Signature] of a goal file.
func goalSignature(f File, o Options) (Signature, error) {
	o.checking = true
	g, err := parseGoal(f, o)
	if err != nil {
		return Signature{}, err
	}
	s := Signature{InputOptional: true, Shape: o.shape(g.Limits(), g.Uses[spec.GoalWorker])}
	s.ReadOnly, err = o.readOnlyPlan(&g.Steps, g.Uses)
	return s, err
}

// readOnlyPlan reports whether a run of a plan changes nothing.
func (o Options) readOnlyPlan(p *plan.Plan, uses map[string]*spec.Agent) (bool, error) {
	if acts(p) {
		return false, nil
	}
	for _, a := range uses {
		if readOnly, err := o.readOnly(a, map[string]bool{}); !readOnly || err != nil {
			return false, err
		}
	}
	return true, nil
}

// acts reports whether a plan does something itself: it runs a command, a function
// or a run of another kind.
func acts(p *plan.Plan) bool {
	found := p.HasCommands()
	p.Each(func(s *plan.Step) { found = found || s.Func != nil || s.Run != nil })
	return found
}

// readOnly reports whether a run of an agent changes nothing: the agent and the
// agents that it offers have only read-only tools, no hooks and no programs. seen
// holds the files that were checked.
func (o Options) readOnly(a *spec.Agent, seen map[string]bool) (bool, error) {
	changes := func(t tool.Tool) bool { return !t.ReadOnly && allowed(a, t.Name) }
	if a.External() != nil || a.Hooks != nil || len(a.Tools.Commands) > 0 || len(a.Tools.MCP) > 0 || !a.StartsOthers() && slices.ContainsFunc(BuiltinTools(), changes) {
		return false, nil
	}
	for _, t := range a.Offers() {
		below := t.Derived
		if below == nil {
			source := t.Source(a.Dir)
			if seen[source] {
				continue
			}
			seen[source] = true
			var err error
			if below, err = o.offered(source); err != nil {
				return false, err
			}
		}
		if readOnly, err := o.readOnly(below, seen); !readOnly || err != nil {
			return false, err
		}
	}
	return true, nil
}
