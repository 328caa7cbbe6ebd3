package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/servers"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/files/workflow"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/tool"
)

// Check validates an agent file as a run would, without a workspace, a key or
// a call. The error is [decode.Errors] when the file is there and wrong.
func Check(f File, o Options) (warnings []decode.Problem, err error) {
	o.checking = true
	rules := o.checksOf(f)
	rules.Unpriced = func(dir, name string) bool { return o.resolver(dir).Price(name) == nil }
	a, err := spec.ParseAgent(f.Path, f.Text, rules)
	if err != nil {
		return nil, err
	}
	warnings = a.Warnings
	if names := a.Variables(); len(names) > 0 {
		warnings = append(warnings, a.OfPrompt("a run needs --var "+strings.Join(names, "=… and --var ")+"=…"))
	}
	if names := a.TaskVariables(); len(names) > 0 {
		warnings = append(warnings, a.OfTask("a run without INPUT needs --var "+strings.Join(names, "=… and --var ")+"=…"))
	}
	o.tree = newTree(nil)
	if o.gather(a) == nil { // a file that cannot be read is reported already
		root := a
		if a.Loops() {
			root = a.LoopRoot()
		}
		warnings = append(warnings, ofFile(f.Path, o.tooDeep(root, plan.Plan{}))...)
	}
	return append(warnings, o.refusals(f.Path, a)...), nil
}

// ofFile returns warnings that concern a whole file.
func ofFile(path string, texts []string) []decode.Problem {
	var all []decode.Problem
	for _, text := range texts {
		all = append(all, decode.Problem{File: path, Message: text})
	}
	return all
}

// refusals explain why this machine would not run the file. They are not errors of
// the file, which may be meant for another machine.
func (o Options) refusals(path string, a *spec.Agent) []decode.Problem {
	if o.Sandbox == nil || a.Composite != nil {
		return nil
	}
	_, err := o.confinement(a, "")
	if err == nil {
		return nil
	}
	return []decode.Problem{{File: path, Message: "'pawl run' refuses this on this machine: " + strings.TrimPrefix(err.Error(), ErrSandbox.Error()+": ")}}
}

// checksOf returns the checks for one file. A file that was sent as text may not
// read or start anything on this machine.
func (o Options) checksOf(f File) spec.Options {
	rules := o.Checks()
	if f.Sent {
		rules.Sent, rules.Dir = true, o.Dir
		rules.ConfineModel = func(model string) error { return ConfineScript(o.Dir, model) }
	}
	return rules
}

// Checks returns what a file is checked against: the tools and models of this
// version. A missing API key is not an error of the file.
func (o Options) Checks() spec.Options {
	return spec.Options{
		Tools: toolNames(), Aliases: aliases(), Model: o.Model, Classes: o.Config.Classes, Roles: o.Config.Roles,
		CheckWorktrees: o.checkWorktrees, Offers: offeredBy, CheckCommand: checkCommand, CheckProgram: o.checkProgram, CheckAgent: o.checkOffered(map[string]bool{}), Unmet: unmet,
		CheckHosted: func(dir, model, tool string) (ignored string, err error) {
			return hosted(tool, model, o.keyless().resolver(dir))
		},
		CheckModel: func(dir, name string) error {
			resolver := o.resolver(dir)
			if err := resolver.Check(name); err != nil && !errors.Is(err, models.ErrNoKey) {
				return plain(err)
			}
			if err := checkName(name, resolver); err != nil {
				return plain(err)
			}
			return nil
		},
	}
}

// checkWorktrees reports why the workspace cannot have worktrees. A file that is
// only checked may be meant for another workspace.
func (o Options) checkWorktrees() (refused string, err error) {
	if err = o.worktrees().Check(context.Background()); err != nil && o.checking {
		return err.Error(), nil
	}
	return "", err
}

// plain removes what the position in the file already shows, and the package
// prefixes of an error in a script.
func plain(err error) error {
	text := err.Error()
	for _, known := range []string{llm.ErrUnknownModel.Error(), "models", "scripted"} {
		text = strings.TrimPrefix(text, known+": ")
	}
	return errors.New(text)
}

// Explanation is what would happen to one call, and why.
type Explanation struct {
	// Call is the call with the facts about it.
	Call event.ToolCall `json:"call"`
	// Hooks lists the hooks that would run first, in order. Explain does not run
	// them; one of them may block or change the call.
	Hooks []agent.Hook `json:"hooks"`
	// Decision is the verdict of policy; the first entry of Rules made it. Both are
	// empty for a call that never reaches policy because of its Problem.
	Decision policy.Verdict `json:"decision"`
	// Hidden is the rule that hides the tool from the model because it denies every
	// call of it; empty for a tool that is offered.
	Hidden string           `json:"hidden,omitempty"`
	Rules  []policy.Verdict `json:"rules"`
	// Tainted is the verdict once untrusted text and private data have met in the
	// run; nil if it is the same.
	Tainted *policy.Verdict `json:"tainted,omitempty"`
	// Sandbox is where the call would run on this machine. A run starts in the
	// strongest tier available, and the labels of the call are those of that tier.
	Sandbox Boundary `json:"sandbox"`
}

// Explain reports what a run of an agent file would do with one call of a tool,
// without running it or opening a sandbox. For a loop, it uses the agent that
// repeats. The call is "fs.write {...}" with arguments in JSON, or "shell.exec
// COMMAND" with the tool's one required argument as text.
func Explain(f File, call string, o Options) (Explanation, error) {
	a, err := parseWorker(f, o)
	if err != nil {
		return Explanation{}, err
	}
	return o.explain(a, call)
}

// parseWorker reads the agent that does the work of a file. For a loop, that is the
// agent that repeats.
func parseWorker(f File, o Options) (*spec.Agent, error) {
	a, err := spec.ParseAgent(f.Path, f.Text, o.checksOf(f))
	if err != nil || !a.Loops() {
		return a, err
	}
	root := a.LoopRoot().Offers()
	return root[slices.IndexFunc(root, func(t spec.AgentTool) bool { return t.Name == spec.LoopBody })].Derived, nil
}

// explainGoal is [Explain] for the agent that works on a goal.
func explainGoal(f File, call string, o Options) (Explanation, error) {
	g, err := parseGoal(f, o)
	if err != nil {
		return Explanation{}, err
	}
	return o.explain(g.Uses[spec.GoalWorker], call)
}

// explain is [Explain] for a parsed agent.
func (o Options) explain(a *spec.Agent, call string) (Explanation, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(call), " ")
	if name == "" {
		return Explanation{}, errors.New("launch: not a call: give a tool and its arguments, for example 'fs.read {\"path\": \"a.txt\"}'")
	}
	if r := a.External(); r != nil {
		return Explanation{}, fmt.Errorf("launch: %s decides itself what it does: Pawl judges none of its calls", r.Command[0])
	}
	o.checking, o.tree = true, newTree(nil)
	if err := o.gather(a); err != nil {
		return Explanation{}, err
	}
	o.nested = nestedFor(a, o.Workspace, BuiltinTools())
	var refusal error
	if o.confined, refusal = o.confinement(a, ""); refusal != nil && !errors.Is(refusal, ErrSandbox) {
		return Explanation{}, refusal
	}
	env, err := o.environment(a, o.resolver(a.Dir))
	if err != nil {
		return Explanation{}, err
	}
	tools := env.Tools
	c := llm.ToolCall{CallID: "explained", Name: name}
	if t, known := tools.Lookup(name); known {
		if c.Args, err = readArgs(t, strings.TrimSpace(rest)); err != nil {
			return Explanation{}, assembly.Closing(env, err)
		}
	}
	e := Explanation{Call: tools.Resolve(c.CallID, c), Hooks: []agent.Hook{}, Rules: []policy.Verdict{}}
	if e.Call.Problem == nil {
		cfg := agent.Config{Hooks: assembly.Declared(env.Hooks)}
		e.Hooks = append(e.Hooks, cfg.HooksBefore(e.Call.Tool)...)
		r := o.permissions(a)
		e.Decision, e.Rules = r.Explain(&e.Call)
		e.Hidden, _ = assembly.Hides(r, tools, e.Call.Tool)
		r.Taint = event.Taint{Untrusted: &event.TaintSource{}, Private: &event.TaintSource{}}
		if v := r.Decide(&e.Call); v.Decision != e.Decision.Decision {
			v.Reason = "once the run has both untrusted text and private data"
			e.Tainted = &v
		}
		if t, known := tools.Lookup(e.Call.Tool); known {
			e.Sandbox = o.confined.boundary(refusal, t, e.Decision.Sandbox, e.Call.Facts)
		}
	}
	return e, assembly.Closing(env, nil)
}

// readArgs reads the text after a tool's name: a JSON object, or the tool's one
// required argument as plain text.
func readArgs(t tool.Tool, text string) (json.RawMessage, error) {
	if text == "" || text[0] == '{' && json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	var schema struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	if err := json.Unmarshal(t.Schema, &schema); err != nil {
		return nil, fmt.Errorf("launch: the schema of %s: %w", t.Name, err)
	}
	if need := schema.Required; len(need) == 1 && schema.Properties[need[0]].Type == "string" {
		args, err := json.Marshal(map[string]string{need[0]: text})
		if err != nil {
			return nil, fmt.Errorf("launch: %w", err)
		}
		return args, nil
	}
	form := make([]string, len(schema.Required))
	for i, name := range schema.Required {
		form[i] = fmt.Sprintf("%q: …", name)
	}
	return nil, fmt.Errorf("launch: not a call: the arguments of %s are no object in JSON; write '%s {%s}'", t.Name, t.Name, strings.Join(form, ", "))
}

// tooDeep returns the first chain of agents and workflows that max_depth cuts off
// in a root run, or nothing. The agents must be pinned.
func (o Options) tooDeep(root *spec.Agent, p plan.Plan) []string {
	if o.started {
		return nil
	}
	deepest := cmp.Or(o.MaxDepth, event.MaxDepth)
	chain := o.chainBelow(root, p.Runs, []string{cmp.Or(root.Identity.Name, p.Name, "this file")}, map[string]bool{}, deepest-1)
	if chain == nil {
		return nil
	}
	return []string{fmt.Sprintf("the chain %s passes max_depth (here %d levels, or what an agent on the way sets): what goes beyond is refused",
		strings.Join(chain, " > "), deepest)}
}

// checkOffered returns a function that reports the problems of an offered agent
// file and of the files that it offers.
func (o Options) checkOffered(checked map[string]bool) func(source string) error {
	return func(source string) error {
		if o.tree.pinned(source) || checked[source] {
			return nil
		}
		checked[source] = true
		rules := o.Checks()
		rules.CheckAgent = o.checkOffered(checked)
		_, err := spec.ReadAgent(source, rules)
		if problems, ok := errors.AsType[decode.Errors](err); ok && len(problems) > 0 {
			return errors.New(problems[0].String())
		}
		return err
	}
}

// chainBelow returns the first chain that is longer than the remaining levels. on
// holds the files of the chain so far, because an agent that offers itself would
// recurse forever.
func (o Options) chainBelow(a *spec.Agent, runs map[string]plan.Inner, path []string, on map[string]bool, levels int) []string {
	for _, t := range a.Offers() {
		chain := append(slices.Clone(path), t.Name)
		source := t.Source(a.Dir)
		switch {
		case levels <= 0:
			return chain
		case on[source]:
			return append(chain, "…")
		}
		left := levels - 1
		if t.MaxDepth != nil {
			left = min(left, *t.MaxDepth-1)
		}
		below, err := o.pinnedFile(source)
		if err != nil {
			continue
		}
		on[source] = true
		found := o.chainBelow(below, nil, chain, on, left)
		if delete(on, source); found != nil {
			return found
		}
	}
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		chain := append(slices.Clone(path), name)
		if levels <= 0 {
			return chain
		}
		w, err := workflow.Restore(runs[name].File.Path, []byte(runs[name].File.Text))
		if err != nil {
			continue
		}
		left := levels - 1
		if w.MaxDepth != nil {
			left = min(left, *w.MaxDepth-1)
		}
		root := w.Limits()
		o.offerUses(root)
		if found := o.chainBelow(root, runs[name].Plan.Runs, chain, on, left); found != nil {
			return found
		}
	}
	return nil
}

// ConnectServers starts the MCP servers of a file, or of the agents in it, as a run
// would, and reports what each offers.
func ConnectServers(ctx context.Context, f File, o Options) (reports []servers.Report, warnings []string, err error) {
	agents, err := workers(f, o)
	for _, a := range agents {
		these, warned, wrong := o.connect(ctx, a)
		reports, warnings = append(reports, these...), append(warnings, warned...)
		if wrong != nil {
			return reports, warnings, wrong
		}
	}
	return reports, warnings, err
}

func (o Options) connect(ctx context.Context, a *spec.Agent) (reports []servers.Report, warnings []string, err error) {
	o.tree, o.Workspace = newTree(nil), spec.Absolute(o.Workspace)
	o.nested = nestedFor(a, o.Workspace, BuiltinTools())
	if o.confined, err = o.confine(a, ""); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, o.closeBox()) }()
	secrets, err := o.secretsOf(o.source, a)
	if err != nil {
		return nil, nil, err
	}
	return servers.Describe(ctx, a, o.serverHost(o.programs(a, rules(a, o)), secrets), func(tools []tool.Tool) { declare(tools, a.Tools) })
}

// Logins returns the logins at the MCP servers of a file, or of the agents in it.
func Logins(f File, o Options) ([]servers.Login, error) {
	agents, err := workers(f, o)
	if err != nil {
		return nil, err
	}
	return servers.Logins(agents, func(a *spec.Agent, name string) (string, error) {
		return valueOf(a.Tools.Secrets[name], a.Dir, o.getenv())
	}, o.Learn)
}
