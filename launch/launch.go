// Package launch turns an agent file and the flags of a command into a run
// that an engine can start, and an ended process's run back into one that it
// can resume.
package launch

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/policy"
	"github.com/pawlrun/pawl/spec"
	"github.com/pawlrun/pawl/stop"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/fs"
	"github.com/pawlrun/pawl/tool/shell"
)

// Options are the flags that change what a file says.
type Options struct {
	Model     string
	Workspace string
	MaxCycles int
	// BudgetUSD replaces the cap in money; NoBudget removes it.
	BudgetUSD *float64
	NoBudget  bool
	// TimeoutSeconds replaces the wall-time budget.
	TimeoutSeconds float64
	Approve        agent.ApproveMode
	Whole          bool
	// Dir is the directory that relative paths of flags are relative to.
	Dir string
}

// Machine makes an empty machine of the version that a journal names.
func Machine(version string) (machine.Machine, error) {
	if version != agent.Version {
		return nil, fmt.Errorf("launch: %w: machine %s", agent.ErrUnsupported, version)
	}
	return agent.New(), nil
}

// Agent prepares a run of an agent file.
func Agent(path string, input string, o Options) (event.RunStarted, engine.Env, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return event.RunStarted{}, engine.Env{}, fmt.Errorf("launch: %w", err)
	}
	a, err := spec.ParseAgent(path, data)
	if err != nil {
		return event.RunStarted{}, engine.Env{}, err
	}
	env, tools, err := environment(a, o)
	if err != nil {
		return event.RunStarted{}, engine.Env{}, err
	}
	cfg := config(a, o, tools)
	started, err := agent.Start(cfg, llm.UserText(input))
	if err != nil {
		return event.RunStarted{}, engine.Env{}, err
	}
	source, err := filepath.Abs(path)
	if err != nil {
		return event.RunStarted{}, engine.Env{}, fmt.Errorf("launch: %w", err)
	}
	started.Name, started.Source, started.Spec, started.Workspace = a.Identity.Name, source, string(data), o.Workspace
	started.Options = o.record()
	started.Sandbox, started.Warnings = "none", a.Warnings
	return started, env, nil
}

// Environment builds the environment of a run that is resumed from its first
// event.
func Environment(started event.RunStarted) (engine.Env, error) {
	a, err := spec.ParseAgent(started.Source, []byte(started.Spec))
	if err != nil {
		return engine.Env{}, fmt.Errorf("launch: the run's agent file: %w", err)
	}
	o := Options{Workspace: started.Workspace, Dir: started.Options["dir"]}
	env, _, err := environment(a, o)
	return env, err
}

// record names the options that a resumed run needs again.
func (o Options) record() map[string]string {
	m := map[string]string{"dir": o.Dir, "model": o.Model, "approve": string(o.Approve)}
	maps.DeleteFunc(m, func(_, v string) bool { return v == "" })
	return m
}

func environment(a *spec.Agent, o Options) (engine.Env, *tool.Set, error) {
	ws, err := fs.Open(o.Workspace)
	if err != nil {
		return engine.Env{}, nil, err
	}
	all := append(ws.Tools(), shell.New(shell.Options{Dir: o.Workspace}))
	if a.Tools.Allow != nil {
		all = slices.DeleteFunc(all, func(t tool.Tool) bool { return !slices.Contains(a.Tools.Allow, t.Name) })
	}
	set, err := tool.NewSet(all...)
	if err != nil {
		return engine.Env{}, nil, err
	}
	resolver := models.Resolver{Dirs: []string{a.Dir, o.Dir}}
	return engine.Env{Model: resolver.Open, Tools: set, Close: ws.Close}, set, nil
}

func config(a *spec.Agent, o Options, tools *tool.Set) agent.Config {
	cfg := agent.Config{
		System: a.System, Tools: tools.Defs(),
		MaxTokens: a.ModelPolicy.Decoding.MaxTokens, Temperature: a.ModelPolicy.Decoding.Temperature,
		OnLimit: agent.OnLimit(a.OnLimit), OnNoToolCall: agent.OnNoToolCall(a.OnNoToolCall),
		Dispatch: agent.Dispatch(a.ToolDispatch), NudgeText: a.NudgeText, MaxNudges: a.MaxNudges,
		Policy: policy.Rules{Declared: a.Tools.Allow != nil}, Approve: o.Approve, Whole: o.Whole,
	}
	targets := []string{o.Model}
	if o.Model == "" {
		targets = []string{a.ModelPolicy.Primary.Model}
		for _, f := range a.ModelPolicy.Fallbacks {
			targets = append(targets, f.Model)
		}
	}
	var resolver models.Resolver
	for _, t := range targets {
		cfg.Targets = append(cfg.Targets, agent.Target{Model: t, Price: resolver.Price(t)})
	}
	limits(a, o, &cfg)
	iteration(a, &cfg)
	return cfg.WithDefaults()
}

func limits(a *spec.Agent, o Options, cfg *agent.Config) {
	l := &cfg.Limits
	l.MaxCycles, l.USDPerRun = a.MaxCycles, 5
	if v := a.ModelPolicy.Budget.USDPerRun; v != nil {
		l.USDPerRun = *v
	}
	if v := a.Budgets.MaxToolCalls; v != nil {
		l.MaxToolCalls = *v
	}
	if v := a.Budgets.MaxWallSeconds; v != nil {
		l.MaxWallSeconds = *v
	}
	if a.Iteration != nil && a.Iteration.MaxCycles > 0 {
		l.MaxCycles = a.Iteration.MaxCycles
	}
	if o.MaxCycles > 0 {
		l.MaxCycles = o.MaxCycles
	}
	if o.BudgetUSD != nil {
		l.USDPerRun = *o.BudgetUSD
	}
	if o.NoBudget {
		l.USDPerRun = 0
	}
	if o.TimeoutSeconds > 0 {
		l.MaxWallSeconds = o.TimeoutSeconds
	}
}

// iteration applies ALDO's block, whose defaults differ from a plain agent's.
func iteration(a *spec.Agent, cfg *agent.Config) {
	if a.Iteration == nil {
		return
	}
	if cfg.OnLimit == "" {
		cfg.OnLimit = agent.OnLimitOK
	}
	if cfg.OnNoToolCall == "" {
		cfg.OnNoToolCall = agent.NoToolCallNudge
	}
	if cfg.Dispatch == "" {
		cfg.Dispatch = agent.ParallelAll
	}
	for _, c := range a.Iteration.TerminationConditions {
		cond := stop.Condition{Kind: stop.Kind(c.Kind), Text: c.Text, Tool: c.Tool}
		if c.Match != nil {
			cond.Match = stop.Match{ExitCode: c.Match.ExitCode, Contains: c.Match.Contains}
		}
		cfg.Conditions = append(cfg.Conditions, cond)
	}
}
