package launch

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// config is what a file says of the loop.
func (o Options) config(a *spec.Agent, targets []target) (cfg agent.Config, err error) {
	s := a.Effective()
	cfg = agent.Config{
		System: a.System, ProviderTools: a.Tools.Provider,
		MaxTokens: maxTokens(a, targets), Temperature: a.ModelPolicy.Decoding.Temperature,
		Limits:  limits(a),
		OnLimit: agent.OnLimit(s.OnLimit), OnNoToolCall: agent.OnNoToolCall(s.OnNoToolCall),
		Dispatch: agent.Dispatch(s.ToolDispatch), NudgeText: s.NudgeText,
		Compact: compaction(s), Policy: o.permissions(a), Approve: o.Approve, NoStream: o.NoStream,
	}
	approvals(s.Approvals, &cfg)
	for _, t := range targets {
		cfg.Targets = append(cfg.Targets, t.Target)
	}
	if a.ResultSchema != nil {
		cfg.Schema = a.ResultSchema.JSON
	}
	if o.byTool(a) {
		cfg.Schema, cfg.Result, cfg.ResultText = nil, tool.ResultName, true
	}
	if s.Cache != nil {
		cfg.Cache = llm.Caching(s.Cache.TTL)
	}
	if s.StallTimeout != nil {
		cfg.StallTimeout = s.StallTimeout.Duration()
	}
	cfg.OnBudget = actions(a.Budgets)
	cfg.MaxNudges = value(s.MaxNudges)
	cfg.OnDenied, cfg.OnRejected = agent.OnRefusedCall(s.OnDenied), agent.OnRefusedCall(s.OnRejected)
	cfg.FailureThreshold = value(s.FailureThreshold)
	if a.Iteration != nil {
		iteration(a.Iteration, &cfg)
		// ALDO's trigger is crossed when it is reached, not only when it is exceeded.
		cfg.Compact.Inclusive = s.Compact == nil || s.Compact.Inclusive == nil || *s.Compact.Inclusive
	}
	cfg.UnpricedBelow, err = o.tree.unpriced.of(o.source, func() ([]string, error) { return o.unpricedBelow(a, map[string]bool{}) })
	return cfg, err
}

// actions say what reaching a limit means, nil where nobody does.
func actions(b spec.Budgets) map[string]agent.OnBudget {
	var all map[string]agent.OnBudget
	for setting, action := range b.Actions {
		if all == nil {
			all = map[string]agent.OnBudget{}
		}
		all[setting] = agent.OnBudget(action)
	}
	return all
}

// iteration applies ALDO's block, whose defaults differ from a plain agent's.
func iteration(it *spec.Iteration, cfg *agent.Config) {
	cfg.OnLimit = cmp.Or(cfg.OnLimit, agent.OnLimitOK)
	cfg.OnNoToolCall = cmp.Or(cfg.OnNoToolCall, agent.NoToolCallNudge)
	cfg.MaxNudges = cmp.Or(cfg.MaxNudges, budget.None)
	// ALDO's loop goes on whatever fails.
	cfg.FailureThreshold = cmp.Or(cfg.FailureThreshold, budget.None)
	cfg.Dispatch = cmp.Or(cfg.Dispatch, agent.ParallelAll)
	cfg.Compact.Strategy = cmp.Or(cfg.Compact.Strategy, compact.Strategy(it.SummaryStrategy), compact.RollingWindow)
	cfg.Conditions = it.TerminationConditions
}

// compaction is what the file says of a conversation that grows too long. What
// it leaves open is the strategy's own.
func compaction(s spec.Settings) compact.Settings {
	c := compact.Settings{Window: value(s.ContextWindow)}
	if s.Compact == nil {
		return c
	}
	c.Off, c.Strategy, c.Measure = value(s.Compact.Off), compact.Strategy(s.Compact.Strategy), compact.Measure(s.Compact.Measure)
	c.Ratio, c.Inclusive, c.MaxSummaries = value(s.Compact.Ratio), value(s.Compact.Inclusive), s.Compact.MaxSummaries
	if s.Compact.SummaryRole == string(llm.RoleSystem) {
		c.SummaryRole = llm.RoleSystem
	}
	if k := s.Compact.Keep; k != nil {
		c.KeepTurns, c.KeepMessages = value(k.Turns), value(k.Messages)
	}
	return c
}

// risksOf are the risks that a file gives its tools, and its programs.
func risksOf(t spec.Tools) map[string]string {
	risks := map[string]string{}
	for _, c := range t.Commands {
		risks[c.Name] = c.Risk
	}
	maps.Copy(risks, t.Risks)
	return risks
}

// rules are the file's permissions. Tools are listed in the order of their
// names, so that the same file always gives the same bytes.
func rules(a *spec.Agent, o Options) policy.Rules {
	r := policy.Rules{Declared: a.Tools.Allow != nil, Nested: o.nested.patterns, Git: policy.Git(a.Tools.Permissions.GitOf()), Repositories: o.repositories()}
	r.Named = a.Tools.CommandNames()
	agents := a.Tools.AgentNames()
	named := slices.Sorted(maps.Keys(a.Tools.Approvals))
	named = slices.DeleteFunc(named, func(name string) bool { return slices.Contains(agents, name) })
	for _, name := range slices.Concat(named, agents) {
		switch a.Tools.Approvals[name] {
		case "":
			if slices.Contains(agents, name) {
				r.Open = append(r.Open, name) // its own calls are judged by its own file
			}
		case "always":
			r.Gates = append(r.Gates, name)
		case "never":
			r.Open = append(r.Open, name)
		case "protected_paths":
			r.GateProtected = append(r.GateProtected, name)
		}
	}
	for name, risk := range risksOf(a.Tools) {
		if policy.High(event.Risk(risk)) && a.Tools.Approvals[name] != "never" {
			if r.HighRisk == nil {
				r.HighRisk = map[string]event.Risk{}
			}
			r.HighRisk[name] = event.Risk(risk)
		}
	}
	r.Mode = policy.Mode(a.Tools.Mode)
	r.Network, r.RuleOfTwo, r.MaySend = a.Tools.Permissions.Egress(), policy.RuleOfTwo(a.Tools.RuleOfTwo), a.Tools.MaySend
	if p := a.Tools.Permissions; p != nil && (p.Filesystem == string(policy.FilesystemNone) || p.Filesystem == string(policy.FilesystemReadOnly)) {
		r.Filesystem = policy.Filesystem(p.Filesystem)
	}
	for _, rule := range a.Tools.Rules {
		given := rule.Policy()
		r.Rules = append(r.Rules, given)
		if given.Decision == event.DecisionAllow {
			continue
		}
		within := inWorkspace(o.Workspace, given.Path)
		for _, p := range slices.Concat(within, behindLinks(o.Workspace, append(within, given.Path)...)) {
			given.Path = p
			r.Rules = append(r.Rules, given)
		}
	}
	for _, p := range a.Tools.ProtectedPaths {
		r.Protected = append(r.Protected, policy.Pattern(p))
	}
	r.Protected = append(r.Protected, inWorkspace(o.Workspace, r.Protected...)...)
	r.Protected = append(r.Protected, hookFiles(a, o.Workspace)...)
	own := behindLinks(o.Workspace, r.Protected...)
	r.Protected = slices.Concat(r.Protected, linkedWithin(o.Workspace, policy.Builtin()), own)
	r.Protected = append(r.Protected, onTheWay(o.Workspace, append(policy.Builtin(), r.Protected...)...)...)
	return r
}
