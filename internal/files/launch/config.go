package launch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/hook/command"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/tool"
)

// config returns a file's settings of the loop.
func (o Options) config(a *spec.Agent, targets []target) (cfg agent.Config, err error) {
	s := a.Effective()
	cfg = agent.Config{
		System: o.system(a), ProviderTools: a.Tools.Provider,
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
		cfg.Schema, cfg.ResultText = a.ResultSchema.JSON, true
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
		// ALDO compacts when the size reaches the trigger, not only when it exceeds
		// it.
		cfg.Compact.Inclusive = s.Compact == nil || s.Compact.Inclusive == nil || *s.Compact.Inclusive
	}
	cfg.UnpricedBelow, err = o.tree.unpriced.of(o.source, func() ([]string, error) { return o.unpricedBelow(a) })
	return cfg, err
}

// actions returns what happens at each limit, or nil if the file sets none.
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

// iteration applies ALDO's iteration block, whose defaults differ from a plain
// agent's.
func iteration(it *spec.Iteration, cfg *agent.Config) {
	cfg.OnLimit = cmp.Or(cfg.OnLimit, agent.OnLimitOK)
	cfg.OnNoToolCall = cmp.Or(cfg.OnNoToolCall, agent.NoToolCallNudge)
	cfg.MaxNudges = cmp.Or(cfg.MaxNudges, budget.None)
	// ALDO's loop continues after any failure.
	cfg.FailureThreshold = cmp.Or(cfg.FailureThreshold, budget.None)
	cfg.Dispatch = cmp.Or(cfg.Dispatch, agent.ParallelAll)
	cfg.Compact.Strategy = cmp.Or(cfg.Compact.Strategy, compact.Strategy(it.SummaryStrategy), compact.RollingWindow)
	cfg.Conditions = it.TerminationConditions
}

// compaction returns the file's compaction settings. Unset values keep the
// strategy's defaults.
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

// risksOf returns the risks that a file assigns to its tools and programs.
func risksOf(t spec.Tools) map[string]string {
	risks := map[string]string{}
	for _, c := range t.Commands {
		risks[c.Name] = c.Risk
	}
	maps.Copy(risks, t.Risks)
	return risks
}

// rules returns the file's permissions. Tools are sorted by name, so the same file
// always gives the same bytes.
func rules(a *spec.Agent, o Options) policy.Rules {
	r := policy.Rules{Declared: a.Tools.Allow != nil, Nested: o.nested.patterns, Git: policy.Git(a.Tools.Permissions.GitOf()), Repositories: o.repositories()}
	r.Named, r.Served = a.Tools.CommandNames(), a.Tools.ServerAllows()
	agents := a.Tools.AgentNames()
	named := slices.Sorted(maps.Keys(a.Tools.Approvals))
	named = slices.DeleteFunc(named, func(name string) bool { return slices.Contains(agents, name) })
	for _, name := range slices.Concat(named, agents) {
		switch a.Tools.Approvals[name] {
		case "":
			if slices.Contains(agents, name) {
				r.Open = append(r.Open, name) // the child's own file judges its calls
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

// ReadConfig reads a config file. The error is [decode.Errors] when the file is
// there and wrong.
func ReadConfig(path string) (models.Config, error) {
	file, err := spec.ReadConfig(path, spec.ConfigOptions{
		Providers: models.KnownProviders(), Profiles: openaichat.ProfileNames(), Abilities: models.Abilities(),
	})
	if err != nil {
		return models.Config{}, err
	}
	c := models.Config{
		File:    spec.Absolute(path),
		Classes: file.Classes, Roles: map[string]string{},
		Providers: map[string]models.Provider{}, Models: map[string]models.Override{},
	}
	for name, p := range file.Providers {
		c.Providers[name] = models.Provider(p)
	}
	for name, m := range file.Models {
		c.Models[name] = models.Override{
			ContextWindow: value(m.ContextWindow), MaxOutput: value(m.MaxOutput), Price: price(m.Price), Can: m.Can,
		}
	}
	for role, model := range map[string]string{
		"architect": file.Roles.Architect, "editor": file.Roles.Editor, "subagent": file.Roles.Subagent,
	} {
		if model != "" {
			c.Roles[role] = model
		}
	}
	return c, nil
}

func price(p *spec.ConfigPrice) *llm.Price {
	if p == nil {
		return nil
	}
	full := llm.Price{Input: *p.Input, Output: *p.Output, CacheRead: *p.Input, CacheWrite: *p.Input}
	if p.CacheRead != nil {
		full.CacheRead = *p.CacheRead
	}
	if p.CacheWrite != nil {
		full.CacheWrite = *p.CacheWrite
	}
	return &full
}

// defaultMaxTokens caps an answer if the file sets no cap. A model's own lower
// limit wins.
const defaultMaxTokens = 8192

// ErrNoModel is returned when neither the file nor a flag names a model.
var ErrNoModel = errors.New("launch: no model: give model_policy.primary.model in the file, or --model provider/model")

// target is one model of the chain with its output limit, 0 if unknown.
type target struct {
	agent.Target
	maxOutput int
}

// targets lists the models of the run in the order of use. It returns an error for
// a model that cannot be called, as far as that is known without a call.
func targets(a *spec.Agent, o Options, resolver *models.Resolver) ([]target, error) {
	if a.StartsOthers() || a.External() != nil {
		return nil, nil // the others have a model, or need none
	}
	names := a.Chain()
	if o.Model != "" {
		if err := checkName(o.Model, resolver); err != nil {
			return nil, fmt.Errorf("launch: %w", err)
		}
		names = []string{o.Model}
	}
	if len(names) == 0 {
		return nil, ErrNoModel
	}
	return targetsOf(names, resolver)
}

// checkName is [models.Resolver.CheckName] with advice on how to name the model.
func checkName(name string, resolver *models.Resolver) error {
	err := resolver.CheckName(name)
	if err != nil {
		err = fmt.Errorf("%w If the name is right, list it in the config file: models: {%s: {}}", err, name)
	}
	return err
}

func targetsOf(names []string, resolver *models.Resolver) ([]target, error) {
	var out []target
	for _, name := range names {
		if err := resolver.Check(name); err != nil {
			return nil, fmt.Errorf("launch: %w", err)
		}
		t, info := targetOf(name, resolver)
		out = append(out, target{Target: t, maxOutput: info.MaxOutput})
	}
	return out, nil
}

// targetOf returns a model with its known properties.
func targetOf(name string, resolver *models.Resolver) (agent.Target, models.Info) {
	info, _ := resolver.Lookup(name)
	schemas, known := resolver.Can(name, models.CanSchema)
	return agent.Target{
		Model: name, Price: resolver.Price(name), ContextWindow: info.ContextWindow, NoSchema: known && !schemas,
	}, info
}

// maxTokens returns the output cap of every call. It is one value for the whole
// chain, so that a fallback does not change the request.
func maxTokens(a *spec.Agent, targets []target) int {
	if v := a.ModelPolicy.Decoding.MaxTokens; v != nil {
		return *v
	}
	limit := defaultMaxTokens
	for _, t := range targets {
		if t.maxOutput > 0 {
			limit = min(limit, t.maxOutput)
		}
	}
	return limit
}

// hooks returns the file's hooks as programs that run in the workspace and must be
// unchanged since the run began.
func hooks(a *spec.Agent, o Options) []hook.Hook {
	var all []hook.Hook
	for _, h := range a.Hooks.All() {
		c := commandOf(h, a.Dir, o.Workspace)
		entry := hook.Hook{Stage: h.Stage, Name: h.Name, Kind: hook.Kind(h.Kind), Tools: h.About()}
		if h.TimeoutSeconds != nil {
			entry.Timeout = h.TimeoutSeconds.Duration()
		}
		all = append(all, entry)
		last := &all[len(all)-1]
		// The output of a program matters only if the hook is a gate.
		c.Observer = hook.Named([]hook.Hook{*last})[0].Kind == hook.Observer
		last.Run = c.Pinned(pinsOf(o.hookPins, h.Path))
	}
	return hook.Named(all)
}

func commandOf(h spec.HookAt, dir, workspace string) command.Command {
	return command.Command{Words: h.Command.Words, Line: h.Command.Line, FileDir: spec.Absolute(h.From(dir)), Workspace: spec.Absolute(workspace)}
}

// hookFiles returns patterns for the workspace files that the hooks and the
// programs of tools.commands consist of. They are protected, because a model that
// could write its own guard would have none.
func hookFiles(a *spec.Agent, workspace string) []policy.Pattern {
	var names filePatterns
	for _, h := range a.Hooks.All() {
		for _, file := range commandOf(h, a.Dir, workspace).Files() {
			names.add(workspace, file)
		}
	}
	for _, file := range commandFiles(a, workspace) {
		names.add(workspace, file)
	}
	return names
}

// pinHooks returns the programs and scripts of the hooks as they are now.
func pinHooks(a *spec.Agent, workspace string) ([]event.HookFile, error) {
	var files []event.HookFile
	for _, h := range a.Hooks.All() {
		pins, err := commandOf(h, a.Dir, workspace).Pins()
		if err != nil {
			return nil, fmt.Errorf("launch: %s: %w", h.Path, err)
		}
		for _, p := range pins {
			files = append(files, event.HookFile{Hook: h.Path, Path: p.Path, Digest: p.Digest})
		}
	}
	return files, nil
}

// pinsOf returns the pins of one hook.
func pinsOf(files []event.HookFile, at string) []command.Pin {
	var pins []command.Pin
	for _, f := range files {
		if f.Hook == at {
			pins = append(pins, command.Pin{Path: f.Path, Digest: f.Digest})
		}
	}
	return pins
}

// checkCommand reports why a hook's program cannot run.
func checkCommand(dir string, c spec.Command) error {
	return commandOf(spec.HookAt{Hook: spec.Hook{Command: c}}, dir, "").Check()
}
