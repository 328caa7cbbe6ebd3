// Package assembly turns an agent's definition into a run: its first event and the
// environment of its effects. The definition comes from an agent file (package launch)
// or from a program (package pawl); the resulting runs do not differ.
package assembly

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/result"
)

// Definition describes an agent and the objects that its configuration names.
type Definition struct {
	// Name is the name of its runs in lists.
	Name string
	// Config is the owner's configuration of the loop. Prepare sets the defaults and
	// the fields that follow from the rest of the definition.
	Config agent.Config
	// Change applies the changes of a caller to Config; nil changes nothing.
	Change func(*agent.Config) error
	// Child marks a child run. Its limits on money and time are those of the tree, so
	// they have no defaults.
	Child bool
	// Host is the environment of the machine that drives the run: models, questions,
	// contents of the workspace, and resources to close.
	Host perform.Env
	// Tools are the model's tools except the agents, and Secrets the values that only
	// the tools receive. The tools in Variables receive theirs in the environment of
	// their programs.
	Tools     []tool.Tool
	Secrets   []secret.Secret
	Variables []string
	// Below are the secrets of the runs that this run may start. Their text may reach
	// this run, too.
	Below  []secret.Secret
	Hooks  []hook.Hook
	Agents []Agent
	// Compiled is an earlier set with compiled schemas to reuse, or nil.
	Compiled *tool.Set
}

// Agent is an agent that a run may start as a tool.
type Agent struct {
	// Tool is the agent as a tool, see [tool.ForAgent].
	Tool tool.Tool
	// MaxDepth limits the levels of runs below the run that offers the agent; 0 means
	// only the limit of the tree applies.
	MaxDepth int
	// Isolated gives each run a git worktree of its own.
	Isolated bool
	// Secrets are the secrets of its runs and of all runs below them.
	Secrets []secret.Secret
	// Begin returns the first event and the environment of a run with a task. dir is
	// the run's workspace, or empty for the agent's own.
	Begin func(dir string, input event.InputReceived) (event.RunStarted, perform.Env, error)
	// Resume returns the environment of a run that continues.
	Resume func(run string, started event.RunStarted) (perform.Env, error)
}

// Prepared is a definition that is ready to run. Runs do not modify it, so any number
// of them can share it.
type Prepared struct {
	// Config is the configuration that a run records.
	Config agent.Config
	name   string
	child  bool
	env    perform.Env
}

// Prepare compiles the tools, sets the defaults and links the agents to the runs that
// they start. The error is that of [tool.NewSet], of Change, or a
// [*budget.UnpricedError].
func (d Definition) Prepare() (*Prepared, error) {
	env, err := d.Environment()
	if err != nil {
		return nil, err
	}
	cfg := d.Config
	cfg.Tools, cfg.Hidden = offered(cfg.Policy, env.Tools)
	cfg.Hooks = Declared(d.Hooks)
	cfg = withDefaults(cfg, d.Child)
	if d.Change != nil {
		if err := d.Change(&cfg); err != nil {
			return nil, err
		}
	}
	if err := Affordable(cfg); err != nil {
		return nil, err
	}
	return &Prepared{Config: cfg, name: d.Name, child: d.Child, env: env}, nil
}

// Environment returns the environment of the effects of the definition's runs.
func (d Definition) Environment() (perform.Env, error) {
	env := d.Host
	tools := slices.Clip(secret.Broker(d.Tools, d.Secrets, d.Variables...))
	for _, a := range d.Agents {
		tools = append(tools, a.Tool)
		if env.Children == nil {
			env.Children = map[string]perform.Child{}
		}
		env.Children[a.Tool.Name] = a.Child()
	}
	env.Hooks, env.Secrets = d.Hooks, secret.NewRedactor(slices.Concat(d.Secrets, d.Below)...)
	var err error
	env.Tools, err = d.Compiled.Again(tools...)
	return env, err
}

// Child returns the agent in the form that the engine uses.
func (a Agent) Child() perform.Child {
	begin := func(dir string, args json.RawMessage) (event.RunStarted, perform.Env, error) {
		var t struct {
			tool.Task
			Media []llm.Media `json:"media"`
		}
		if err := json.Unmarshal(args, &t); err != nil {
			return event.RunStarted{}, perform.Env{}, fmt.Errorf("the task: %w", err)
		}
		return a.Begin(dir, event.InputReceived{Text: t.Task.Task, Media: t.Media})
	}
	return perform.Child{
		MaxDepth: a.MaxDepth, Isolated: a.Isolated, Secrets: secret.NewRedactor(a.Secrets...), Resume: a.Resume, BeginIn: begin,
		Begin: func(args json.RawMessage) (event.RunStarted, perform.Env, error) { return begin("", args) },
	}
}

// Env returns an environment for one run. The caller may modify it.
func (p *Prepared) Env() perform.Env {
	env := p.env
	env.Children = maps.Clone(env.Children)
	return env
}

// Start returns the first event of a run with an input. fence is the fence of the run
// that it continues, or nil.
func (p *Prepared) Start(input event.InputReceived, fence *event.Fence) (event.RunStarted, error) {
	started, err := Start(p.Config, p.env, input, fence)
	started.Name, started.Warnings = p.name, append(Removed(p.Config.Limits.Lacks(), p.child), Warnings(p.Config)...)
	return started, err
}

// Start is like [Prepared.Start], for another configuration and an existing
// environment.
func Start(cfg agent.Config, env perform.Env, input event.InputReceived, fence *event.Fence) (event.RunStarted, error) {
	if fence == nil && env.Tools.Fences() {
		fence = &event.Fence{}
	}
	return agent.StartFenced(cfg, input.Message(), fence)
}

// withDefaults sets the defaults, except a child's limits that apply to its whole tree.
func withDefaults(cfg agent.Config, child bool) agent.Config {
	if !child {
		return cfg.WithDefaultCap().WithDefaults()
	}
	wall := max(cfg.Limits.MaxWallSeconds, 0)
	cfg = cfg.WithDefaults()
	cfg.Limits.MaxWallSeconds = wall
	return cfg
}

// OfTree sets the defaults of a run that starts others but is not an agent: the limits
// on money and time, which apply to its tree. Each agent has the other limits of its
// own.
func OfTree(cfg agent.Config) agent.Config {
	cfg = cfg.WithDefaultCap()
	whole := cfg.WithDefaults().Limits
	for _, s := range budget.Table() {
		if v, number := s.Value(whole); number && v > 0 && s.Kind == budget.Time {
			_ = cfg.SetLimit(s.Name, v) // a default is always valid
		}
	}
	return cfg
}

// Affordable returns a [*budget.UnpricedError] if an explicit limit on money cannot be
// enforced because a model has no known price. The default limit does not prevent a run
// of such a model.
func Affordable(cfg agent.Config) error {
	limit, _ := cfg.Limits.CostCap()
	if names := cfg.Unpriced(); len(names) > 0 && limit > 0 && !cfg.DefaultCap {
		return &budget.UnpricedError{Models: names, USD: limit}
	}
	return nil
}

// Warnings returns warnings about the possible cost of a run: the models that no limit
// on money covers, including those of agents that draw from its budget.
func Warnings(cfg agent.Config) []string {
	if w := cfg.Limits.Uncounted(cfg.Unpriced()); w != "" {
		return []string{w}
	}
	return nil
}

// Removed returns a warning for the run's first event about limits that the owner
// removed. A child has none, because the root's warning covers its tree.
func Removed(limits []string, child bool) []string {
	if len(limits) == 0 || child {
		return nil
	}
	return []string{strings.Join(limits, ", ") + ": removed, as requested; nothing of this kind stops the run"}
}

// WithResults adds result.read to tools that may return long results. It needs no
// permission, because it reads only results that the run already has.
func WithResults(tools []tool.Tool) []tool.Tool {
	if slices.ContainsFunc(tools, func(t tool.Tool) bool { return t.Name == result.Name }) {
		return tools
	}
	return append(slices.Clip(tools), result.New())
}

// Declared converts hooks to the form that the machine uses.
func Declared(hooks []hook.Hook) []agent.Hook {
	var out []agent.Hook
	for _, h := range hooks {
		out = append(out, agent.Hook{Stage: h.Stage, Name: h.Name, Observer: h.Kind == hook.Observer, Tools: h.About(result.Name)})
	}
	return out
}

// offered returns the tools that the model sees and the hidden tools, which policy
// would always deny. The run records both when it begins, so that the prefix of its
// requests never changes.
func offered(r policy.Rules, tools *tool.Set) ([]llm.ToolDef, []agent.HiddenTool) {
	shown := tools.Defs()
	var hidden []agent.HiddenTool
	return slices.DeleteFunc(shown, func(def llm.ToolDef) bool {
		rule, hides := Hides(r, tools, def.Name)
		if hides {
			hidden = append(hidden, agent.HiddenTool{Tool: def.Name, Rule: rule})
		}
		return hides
	}), hidden
}

// Hides reports whether policy denies every call of a tool, and the rule that does.
func Hides(r policy.Rules, tools *tool.Set, name string) (rule string, hides bool) {
	t, known := tools.Lookup(name)
	if !known {
		return "", false
	}
	return r.Hides(Visible(t))
}

// Visible returns the properties of a tool that decide whether it is hidden.
func Visible(t tool.Tool) policy.Tool {
	return policy.Tool{Name: t.Name, ReadOnly: t.ReadOnly, Risk: t.Risk, Judged: t.Facts != nil, Outgoing: t.Labels != nil && t.Labels.Outgoing, Remote: t.Remote}
}

// Closing closes an environment that no run will use, and joins the errors.
func Closing(env perform.Env, err error) error {
	if env.Close != nil {
		err = errors.Join(err, env.Close())
	}
	return err
}
