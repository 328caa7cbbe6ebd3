package launch

import (
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/policy"
	"github.com/pawlrun/pawl/spec"
	"github.com/pawlrun/pawl/stop"
	"github.com/pawlrun/pawl/tool"
)

// defaultMaxNudges is how often a run without an iteration block is nudged
// (REQUIREMENTS C-2); with one, only the cycle cap bounds it.
const defaultMaxNudges = 3

// config is what the machine gets of a file and of the flags.
func config(a *spec.Agent, o Options, targets []target, tools *tool.Set) agent.Config {
	s := a.Effective()
	cfg := agent.Config{
		System: a.System, Tools: tools.Defs(), ProviderTools: a.Tools.Provider,
		MaxTokens: maxTokens(a, targets), Temperature: a.ModelPolicy.Decoding.Temperature,
		Limits:  limits(a, o),
		OnLimit: agent.OnLimit(s.OnLimit), OnNoToolCall: agent.OnNoToolCall(s.OnNoToolCall),
		Dispatch: agent.Dispatch(s.ToolDispatch), NudgeText: s.NudgeText,
		Policy: rules(a), Approve: o.Approve, Whole: o.Whole,
	}
	for _, t := range targets {
		cfg.Targets = append(cfg.Targets, t.Target)
	}
	if s.Cache != nil {
		cfg.Cache = llm.Caching(s.Cache.TTL)
	}
	if s.MaxNudges != nil {
		cfg.MaxNudges = *s.MaxNudges
	}
	if a.Iteration == nil {
		cfg.MaxNudges = or(cfg.MaxNudges, defaultMaxNudges)
	} else {
		iteration(a.Iteration, &cfg)
	}
	return cfg.WithDefaults()
}

// iteration applies ALDO's block, whose defaults differ from a plain agent's.
func iteration(it *spec.Iteration, cfg *agent.Config) {
	cfg.OnLimit = or(cfg.OnLimit, agent.OnLimitOK)
	cfg.OnNoToolCall = or(cfg.OnNoToolCall, agent.NoToolCallNudge)
	cfg.Dispatch = or(cfg.Dispatch, agent.ParallelAll)
	for _, c := range it.TerminationConditions {
		cond := stop.Condition{Kind: stop.Kind(c.Kind), Text: c.Text, Tool: c.Tool}
		if c.Match != nil {
			cond.Match = stop.Match{ExitCode: c.Match.ExitCode, Contains: c.Match.Contains}
		}
		cfg.Conditions = append(cfg.Conditions, cond)
	}
}

// rules are the file's permissions. Tools are listed in the order of their
// names, so that the same file always gives the same bytes.
func rules(a *spec.Agent) policy.Rules {
	r := policy.Rules{Declared: a.Tools.Allow != nil}
	for _, name := range toolNames() {
		switch a.Tools.Approvals[name] {
		case "always":
			r.Gates = append(r.Gates, name)
		case "never":
			r.Open = append(r.Open, name)
		case "protected_paths":
			r.GateProtected = append(r.GateProtected, name)
		}
	}
	for _, p := range a.Tools.ProtectedPaths {
		r.Protected = append(r.Protected, policy.Pattern(p))
	}
	return r
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
