package spec

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/policy"
)

// Options are what the rules need to know of the world outside the file.
type Options struct {
	// Tools are the names of the tools that exist; nil leaves names unchecked.
	Tools []string
	// Model replaces every model of the file, which then need not name one.
	Model string
	// CheckModel says what is wrong with a model's name; nil leaves names
	// unchecked. dir is the directory of the file.
	CheckModel func(dir, name string) error
	// CheckCommand says what keeps a program from being run; nil leaves
	// programs unchecked. dir is the directory of the file.
	CheckCommand func(dir string, c Command) error
	// Classes are the models that capability classes stand for, Roles those of
	// the roles for which the file names none.
	Classes, Roles map[string]string
}

func (a *Agent) validate(r *report, o Options) {
	oneOf(r, "apiVersion", a.APIVersion, Version, VersionAldo)
	oneOf(r, "kind", a.Kind, "Agent")
	if a.Identity.Name == "" && (a.Kind == "" || r.has("identity")) {
		missing(r, "identity.name", "the agent's name")
	}
	a.ModelPolicy.validate(r, a, o)
	a.Settings.validate(r, "")
	if a.Iteration != nil {
		a.Iteration.validate(r, a, o)
	}
	a.Tools.validate(r, o)
	a.Budgets.validate(r, a)
	if a.ResultSchema != nil {
		a.ResultSchema.validate(r, a)
	}
	if a.Hooks != nil {
		a.Hooks.validate(r, a, o)
	}
	a.refuseUnbuilt(r)
	a.readPrompt(r)
}

func (p *ModelPolicy) validate(r *report, a *Agent, o Options) {
	role, rolePath := a.chosenRole(r)
	p.model(r, a, "model_policy.primary", p.Primary, o)
	for i, m := range p.Fallbacks {
		path := fmt.Sprintf("model_policy.fallbacks[%d]", i)
		if m == (Model{}) {
			missing(r, path+".model", "provider/model")
			continue
		}
		p.model(r, a, path, m, o)
	}
	p.model(r, a, "model_policy.roles.architect", p.Roles.Architect, o)
	p.model(r, a, "model_policy.roles.editor", p.Roles.Editor, o)
	p.model(r, a, "model_policy.roles.subagent", p.Roles.Subagent, o)
	oneOf(r, rolePath, role, "architect", "editor", "subagent")
	if m, known := p.Roles.of(role); known && m == (Model{}) && o.Roles[role] != "" {
		a.byRole = o.Roles[role]
		p.check(r, a, rolePath, a.byRole, o)
	} else if known && m == (Model{}) {
		r.at(rolePath, "a role with a model in model_policy.roles", "%q has no model there", role)
	}
	if len(a.Chain()) == 0 && o.Model == "" && !r.has("model_policy.primary") {
		r.warn("model_policy.primary", "the file names no model, so it runs only with --model")
	}
	within(r, "model_policy.decoding.temperature", p.Decoding.Temperature, 0, 2)
	within(r, "model_policy.decoding.max_tokens", p.Decoding.MaxTokens, 1, 10_000_000)
	money(r, "model_policy.budget.usd_per_run", p.Budget.USDPerRun)
}

// chosenRole is the file's role and where it stands.
func (a *Agent) chosenRole(r *report) (role, path string) {
	if a.Role != "" && a.ModelPolicy.Role != "" {
		r.at("role", "role or model_policy.role", "both are given")
	}
	if a.ModelPolicy.Role != "" || r.has("model_policy.role") {
		return a.ModelPolicy.Role, "model_policy.role"
	}
	return a.Role, "role"
}

func (p *ModelPolicy) model(r *report, a *Agent, path string, m Model, o Options) {
	provider, name, ok := strings.Cut(m.Model, "/")
	switch {
	case o.Model != "":
	case m.Model != "" && m.CapabilityClass != "":
		r.at(path+".capability_class", "model or capability_class", "both are given")
	case m.CapabilityClass != "":
		p.class(r, a, path+".capability_class", m.CapabilityClass, o)
	case m.Model == "" && r.has(path):
		missing(r, path+".model", "provider/model, for example anthropic/claude-sonnet-4-5")
	case m.Model != "" && (!ok || provider == "" || name == ""):
		r.at(path+".model", "provider/model, for example anthropic/claude-sonnet-4-5", "is %q", m.Model)
	case m.Model != "":
		p.check(r, a, path+".model", m.Model, o)
	}
}

// class resolves a capability class.
func (p *ModelPolicy) class(r *report, a *Agent, path, class string, o Options) {
	name, known := o.Classes[class]
	if !known {
		expected := "model: provider/model, or a class of the config file's classes"
		if len(o.Classes) > 0 {
			expected = "one of " + strings.Join(sortedKeys(o.Classes), ", ")
		}
		r.at(path, expected, "no config file says which model %q stands for", class)
		return
	}
	if a.byClass == nil {
		a.byClass = map[string]string{}
	}
	a.byClass[class] = name
	p.check(r, a, path, name, o)
}

func (p *ModelPolicy) check(r *report, a *Agent, path, name string, o Options) {
	if o.CheckModel == nil || o.Model != "" {
		return
	}
	if err := o.CheckModel(a.Dir, name); err != nil {
		r.at(path, "a model that can be called", "%v", err)
	}
}

func (roles Roles) of(role string) (m Model, known bool) {
	switch role {
	case "architect":
		return roles.Architect, true
	case "editor":
		return roles.Editor, true
	case "subagent":
		return roles.Subagent, true
	}
	return Model{}, false
}

// Chain lists the names of the models to use: the primary one, its fallbacks,
// then the model of the file's own role and the other roles' (ALF-40), each
// once. Where there is no primary model the role's own comes first.
func (a *Agent) Chain() []string {
	p := a.ModelPolicy
	models := append([]Model{p.Primary}, p.Fallbacks...)
	role := a.Role
	if p.Role != "" {
		role = p.Role
	}
	own, _ := p.Roles.of(role)
	if own == (Model{}) {
		own.Model = a.byRole
	}
	if p.Primary == (Model{}) {
		models[0] = own
	}
	models = append(models, own, p.Roles.Architect, p.Roles.Editor, p.Roles.Subagent)
	var chain []string
	for _, m := range models {
		if name := cmp.Or(m.Model, a.byClass[m.CapabilityClass]); name != "" && !slices.Contains(chain, name) {
			chain = append(chain, name)
		}
	}
	return chain
}

func (s *Settings) validate(r *report, prefix string) {
	at := func(key string) string { return join(prefix, key) }
	limit(r, at("max_cycles"), s.MaxCycles, 1, 1_000_000)
	oneOf(r, at("on_limit"), s.OnLimit, "ok", "stopped", "fail")
	oneOf(r, at("on_no_tool_call"), s.OnNoToolCall, "finish", "nudge", "stop")
	oneOf(r, at("on_denied"), s.OnDenied, "continue", "stop")
	oneOf(r, at("on_rejected"), s.OnRejected, "continue", "stop")
	limit(r, at("failure_threshold"), s.FailureThreshold, 1, 1_000_000)
	oneOf(r, at("tool_dispatch"), s.ToolDispatch, "ordered-groups", "parallel-first", "by-resource", "parallel-all", "serial")
	limit(r, at("max_nudges"), s.MaxNudges, 1, 1_000_000)
	within(r, at("context_window"), s.ContextWindow, 1, 1_000_000_000)
	notEmpty(r, at("nudge_text"), s.NudgeText)
	if s.Cache != nil {
		s.Cache.validate(r, at("cache"))
	}
	if s.Compact != nil {
		s.Compact.validate(r, at("compact"))
	}
	if s.Approvals != nil {
		s.Approvals.validate(r, at("approvals"))
	}
}

func (c *Compact) validate(r *report, path string) {
	within(r, path+".ratio", c.Ratio, 0.1, 1)
	oneOf(r, path+".measure", c.Measure, "estimate", "provider", "messages")
	oneOf(r, path+".strategy", c.Strategy, "rolling-window", "periodic-summary", "summarize-older")
	within(r, path+".max_summaries", c.MaxSummaries, 0, 1000)
	oneOf(r, path+".summary_role", c.SummaryRole, "user", "system")
	if c.Keep != nil {
		within(r, path+".keep.turns", c.Keep.Turns, 1, 1000)
		within(r, path+".keep.messages", c.Keep.Messages, 1, 1000)
		if c.Keep.Turns != nil && c.Keep.Messages != nil {
			r.at(path+".keep", "turns or messages, one of the two", "both are given")
		}
	}
}

func (it *Iteration) validate(r *report, a *Agent, o Options) {
	it.Settings.validate(r, "iteration")
	a.onlyOnce(r)
	oneOf(r, "iteration.summary_strategy", it.SummaryStrategy, "rolling-window", "periodic-summary")
	if c := a.Effective().Compact; it.SummaryStrategy != "" && c != nil && c.Strategy != "" {
		r.at("iteration.summary_strategy", "summary_strategy or compact.strategy, one of the two", "both are given")
	}
	if r.has("iteration.termination_conditions") && len(it.TerminationConditions) == 0 {
		r.at("iteration.termination_conditions", "at least one condition", "is an empty list")
	}
	for i, c := range it.TerminationConditions {
		c.validate(r, fmt.Sprintf("iteration.termination_conditions[%d]", i), a, o)
	}
	if a.Composite != nil {
		r.at("composite", "iteration or composite, one of the two",
			"composite is given together with iteration: the one is a team of agents, the other a single agent")
	}
}

// onlyOnce reports a setting that stands at the top level and in the iteration
// block. Two cycle caps are no conflict: the smaller one holds.
func (a *Agent) onlyOnce(r *report) {
	top, inner := reflect.ValueOf(a.Settings), reflect.ValueOf(a.Iteration.Settings)
	fields := fieldsOf(top.Type())
	for _, key := range sortedKeys(fields) {
		index := fields[key]
		if key != "max_cycles" && !top.FieldByIndex(index).IsZero() && !inner.FieldByIndex(index).IsZero() {
			r.at(key, key+" or iteration."+key, "both are given")
		}
	}
}

func (c Condition) validate(r *report, path string, a *Agent, o Options) {
	var uses []string
	switch c.Kind {
	case "text-includes":
		uses = []string{"text"}
		if c.Text == "" {
			missing(r, path+".text", "the text to look for")
		}
	case "tool-result":
		uses = []string{"tool", "match"}
		c.validateTool(r, path, a, o)
	case "budget-exhausted":
	case "":
		missing(r, path+".kind", "one of text-includes, tool-result, budget-exhausted")
		return
	default:
		oneOf(r, path+".kind", c.Kind, "text-includes", "tool-result", "budget-exhausted")
		return
	}
	given := map[string]bool{"text": c.Text != "", "tool": c.Tool != "", "match": c.Match != nil}
	for _, key := range []string{"text", "tool", "match"} {
		if given[key] && !slices.Contains(uses, key) {
			r.at(path+"."+key, "no such key", "a %s condition does not have it", c.Kind)
		}
	}
}

func (c Condition) validateTool(r *report, path string, a *Agent, o Options) {
	if c.Tool == "" {
		missing(r, path+".tool", "the name of a tool")
	} else {
		a.Tools.usable(r, path+".tool", c.Tool, o)
	}
	switch {
	case c.Match == nil || c.Match.ExitCode == nil && c.Match.Contains == "":
		missing(r, path+".match", "exit_code, contains, or both")
	default:
		within(r, path+".match.exit_code", c.Match.ExitCode, 0, 255)
	}
}

func (t *Tools) validate(r *report, o Options) {
	for i, name := range t.Allow {
		path := fmt.Sprintf("tools.allow[%d]", i)
		switch {
		case slices.Contains(t.Allow[:i], name):
			r.at(path, "each tool once", "%q is given twice", name)
		default:
			t.known(r, path, name, o)
		}
	}
	for _, name := range sortedKeys(t.Approvals) {
		path := join("tools.approvals", name)
		t.usable(r, path, name, o)
		oneOf(r, path, t.Approvals[name], "always", "never", "protected_paths")
	}
	for _, name := range sortedKeys(t.Timeouts) {
		path := join("tools.timeouts", name)
		t.usable(r, path, name, o)
		seconds := float64(t.Timeouts[name])
		within(r, path, &seconds, 0.001, 86_400)
	}
	for i, name := range t.Provider {
		if name == "" {
			r.at(fmt.Sprintf("tools.provider[%d]", i), "the provider's name of the tool", "is empty")
		}
	}
	for i, pattern := range t.ProtectedPaths {
		path := fmt.Sprintf("tools.protected_paths[%d]", i)
		switch {
		case !policy.Pattern(pattern).Valid():
			r.at(path, "a pattern such as .git/** or **/*.pem", "%q is not a pattern", pattern)
		case strings.HasPrefix(pattern, "~") || strings.HasPrefix(pattern, "../"):
			r.at(path, "a pattern relative to the workspace, or an absolute one", "%q would match nothing", pattern)
		}
	}
	oneOf(r, "tools.mode", t.Mode, "default", "accept-edits", "plan", "bypass")
	if t.Mode == "bypass" {
		r.warn("tools.mode", "calls that would ask run unasked, but for what approvals, rules and protected paths say")
	}
	t.validateTaint(r, o)
	t.validateDeclarations(r, o)
	for i, rule := range t.Rules {
		rule.validate(r, fmt.Sprintf("tools.rules[%d]", i), t, o)
	}
	t.validateSecrets(r, o)
	if p := t.Permissions; p != nil {
		p.validateNetwork(r)
		oneOf(r, "tools.permissions.filesystem", p.Filesystem, "none", "repo-readonly", "repo-readwrite", "full")
		oneOf(r, "tools.permissions.sandbox", p.Sandbox, "required", "bubblewrap", "landlock", "on-demand")
		within(r, "tools.permissions.memory_mb", p.MemoryMB, 16, 1<<30)
		within(r, "tools.permissions.processes", p.Processes, 1, 1<<20)
		if (p.Network == "none" || p.Network == "allowlist") && len(t.Provider) > 0 {
			r.at("tools.permissions.network", "a file without tools.provider", "is %s, and the provider's tools reach other machines", p.Network)
		}
	}
}

// known reports a tool that does not exist.
func (t *Tools) known(r *report, path, name string, o Options) bool {
	if o.Tools == nil || slices.Contains(o.Tools, name) {
		return true
	}
	message := strconv.Quote(name) + " is not a tool"
	if meant := closest(name, o.Tools); meant != "" {
		message += "; did you mean " + meant + "?"
	}
	r.at(path, "one of "+strings.Join(o.Tools, ", "), "%s", message)
	return false
}

// usable reports a tool that does not exist or that the file does not allow.
func (t *Tools) usable(r *report, path, name string, o Options) {
	if t.known(r, path, name, o) && t.Allow != nil && !slices.Contains(t.Allow, name) {
		r.at(path, "a tool of tools.allow", "%q is not in tools.allow", name)
	}
}

// readPrompt fills System.
func (a *Agent) readPrompt(r *report) {
	a.System = a.Prompt.System
	a.systemAt = r.problem(r.place("prompt.system"), "prompt.system", "", "")
	if a.Prompt.SystemFile == "" {
		notEmpty(r, "prompt.system_file", a.Prompt.SystemFile)
		return
	}
	if a.Prompt.System != "" {
		r.at("prompt.system_file", "system or system_file", "both are given")
		return
	}
	path := a.Prompt.SystemFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.Dir, path)
	}
	data, err := readFile(path)
	switch {
	case err != nil:
		r.at("prompt.system_file", "the path of a file, relative to the agent file", "cannot be read: %v", err)
		return
	case !utf8.Valid(data):
		r.at("prompt.system_file", "a text in UTF-8", "%s is not UTF-8", path)
		return
	}
	a.System = strings.TrimPrefix(string(data), "\ufeff")
	a.systemAt = Problem{File: path, Line: 1, Column: 1, Path: "prompt.system_file"}
}

func oneOf(r *report, path, value string, allowed ...string) {
	if value == "" && !r.has(path) || slices.Contains(allowed, value) {
		return
	}
	// A value of another type is already reported, and has left an empty one.
	if value == "" && r.reported(path) {
		return
	}
	expected := "one of " + strings.Join(allowed, ", ")
	if len(allowed) == 1 {
		expected = allowed[0]
	}
	if meant := closest(value, allowed); meant != "" {
		r.at(path, expected, "is %q; did you mean %s?", value, meant)
		return
	}
	r.at(path, expected, "is %q", value)
}

// missing reports that there is no value at a path, unless that is only so
// because something was wrong with what stood there.
func missing(r *report, path, expected string) {
	for at := path; at != ""; at = at[:max(strings.LastIndexAny(at, ".["), 0)] {
		if r.reported(at) {
			return
		}
	}
	r.at(path, expected, "is missing")
}

func notEmpty(r *report, path, value string) {
	if value == "" && r.has(path) && !r.reported(path) {
		r.at(path, "a text", "is empty")
	}
}

func within[N int | int64 | float64](r *report, path string, v *N, low, high N) {
	inside(r, path, v, low, high, "")
}

func inside[N int | int64 | float64](r *report, path string, v *N, low, high N, or string) {
	if v == nil || r.reported(path) || *v >= low && *v <= high {
		return
	}
	expected := fmt.Sprintf("%v to %v", low, high)
	if float64(high) >= 1_000_000_000 {
		expected = fmt.Sprintf("at least %v", low)
	}
	r.at(path, expected+or, "is %v", *v)
}

func money(r *report, path string, usd *float64) {
	if usd == nil || r.reported(path) || *usd > 0 || *usd == None && (isNone(r.places[path]) || !r.has(path)) {
		return
	}
	r.at(path, "an amount in USD above 0, or none", "is %v", *usd)
}
