// Package policy decides whether a tool call may run: pure rules over what the
// driver resolved about it.
//
// All rules that match a call are considered. A denial takes precedence over a
// question, and a question over a permission, whatever their order and however
// specific they are. The defaults apply only if no rule matches.
package policy

import (
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
)

// Rules are the permissions of one run. Where they list tools, a name may be a pattern
// (see [MatchTool]).
type Rules struct {
	// Declared is true if the owner named the tools that may be used. Other tools
	// ask before any side effect.
	Declared bool `json:"declared,omitempty"`
	// Named are tools that the owner named in another place than the list of those that
	// may be used; their calls are permitted as if they stood in it.
	Named []string `json:"named,omitempty"`
	// Served are patterns for tools of servers that the owner allowed with the servers.
	Served []string `json:"served,omitempty"`
	// Gates are the tools of which every call needs an approval.
	Gates []string `json:"gates,omitempty"`
	// HighRisk are the tools that are declared to do something that cannot be
	// undone, with the kind of harm; each call of them needs an approval.
	HighRisk map[string]event.Risk `json:"high_risk,omitempty"`
	// Open are the tools that never ask, even if tools.allow does not name them or
	// their programs run without a sandbox. Protected paths still ask.
	Open []string `json:"open,omitempty"`
	// GateProtected are the tools that ask even before reading a protected path,
	// and when it is not clear which paths they touch.
	GateProtected []string `json:"gate_protected,omitempty"`
	// Protected are the paths that need an approval to be written, besides those of
	// [Builtin].
	Protected []Pattern `json:"protected,omitempty"`
	// Nested are the .git directories of the repositories within the workspace that
	// existed when the run began: a call that touches a whole tree with one of them
	// in it asks.
	Nested []Pattern `json:"nested,omitempty"`
	// Git says what happens to a call that writes a repository of the workspace; empty
	// means [GitAsk].
	Git Git `json:"git,omitempty"`
	// Repositories are the directories outside the workspace that belong to the
	// repository which the workspace is in: of a linked worktree, or above a subdirectory.
	Repositories []string `json:"repositories,omitempty"`
	// Rules are the owner's own.
	Rules []Rule `json:"rules,omitempty"`
	Mode  Mode   `json:"mode,omitempty"`
	// Filesystem limits what any call may do to files; empty adds no limit.
	Filesystem Filesystem `json:"filesystem,omitempty"`
	// Network limits the hosts that Pawl's own tools may reach.
	Network egress.Rules `json:"network,omitzero"`
	// RuleOfTwo says what happens to an outgoing call once untrusted text and
	// private data have met; empty means [RuleOfTwoAsk].
	RuleOfTwo RuleOfTwo `json:"rule_of_two,omitempty"`
	// MaySend are the tools that the rule of two does not apply to.
	MaySend []string `json:"may_send,omitempty"`
	// Taint is what the run has read so far. It is not a setting: it is the run's
	// state, for one decision.
	Taint event.Taint `json:"-"`
	// Redefined are the digests of changed definitions of tools that a person approved;
	// like Taint they are the run's state.
	Redefined []string `json:"-"`
	// Permissions are what a person allowed for the rest of the run. Like Taint
	// they are the run's state, not a setting.
	Permissions []event.Permission `json:"-"`
}

// Mode sets what happens to calls that no rule of the owner's matches.
type Mode string

// The modes.
const (
	// ModeDefault: tools that the owner did not name ask before a side effect.
	ModeDefault Mode = "default"
	// ModeAcceptEdits: files inside the workspace are written without asking.
	ModeAcceptEdits Mode = "accept-edits"
	// ModePlan: every call that may change something is denied.
	ModePlan Mode = "plan"
	// ModeBypass: a call runs that would ask only because nothing names it, because
	// it is unclear, or because it runs without a sandbox. Gates, protected paths
	// and denials still apply.
	ModeBypass Mode = "bypass"
)

// Filesystem is a bound on files, the tightest one first.
type Filesystem string

// The bounds. Those that a program could get around without a sandbox deny the
// calls that run programs.
const (
	FilesystemNone     Filesystem = "none"
	FilesystemReadOnly Filesystem = "repo-readonly"
)

// Git says what happens to calls that write a repository of the workspace, but for its
// settings and hooks, which ask.
type Git string

// What happens to them.
const (
	// GitAsk: they ask, unless a rule names the command of git's that is allowed.
	GitAsk   Git = "ask"
	GitAllow Git = "allow"
	GitDeny  Git = "deny"
)

// Builtin are the paths that are always protected: a repository's own files,
// which decide what later commands run, and Pawl's journals, in which a tool
// could otherwise approve its own calls.
func Builtin() []Pattern { return []Pattern{".git/**", ".pawl/**"} }

// nested protects the same of the repositories within a workspace. It is held
// against the names that a call touches: that it may hold such a name could be
// said of every tree.
const nested Pattern = "**/.git/**"

// Verdict is the answer of one rule about a call, or the decision with the rule
// that made it.
type Verdict struct {
	Decision event.Decision `json:"decision"`
	Rule     string         `json:"rule"`
	Reason   string         `json:"reason,omitempty"`
	// Sandbox says that some rule requires the sandbox for the call, whichever rule
	// decided whether it runs.
	Sandbox bool `json:"sandbox,omitempty"`
}

// Decide judges one resolved call.
func (r Rules) Decide(c *event.ToolCall) Verdict {
	v, _ := r.Explain(c)
	return v
}

// Explain judges a call and returns the answer of every rule that matches, the
// strictest first. The first of them decides.
func (r Rules) Explain(c *event.ToolCall) (Verdict, []Verdict) {
	said := r.personal(c, r.judge(c))
	boxed := slices.ContainsFunc(said, func(v Verdict) bool { return v.Decision == event.DecisionSandbox })
	if boxed && !slices.ContainsFunc(said, func(v Verdict) bool { return v.Decision == event.DecisionAllow }) {
		// Where a call runs is no permission to run it.
		said = append(said, byDefault(c))
	}
	slices.SortStableFunc(said, func(a, b Verdict) int { return strictness(b.Decision) - strictness(a.Decision) })
	if len(said) == 0 {
		said = []Verdict{byDefault(c)}
	}
	said[0].Sandbox = boxed
	return said[0], said
}

func strictness(d event.Decision) int {
	switch d {
	case event.DecisionAllow:
		return 0
	case event.DecisionSandbox:
		return 1
	case event.DecisionAsk:
		return 2
	}
	return 3
}

func (r Rules) judge(c *event.ToolCall) []Verdict {
	said := append(r.changed(c), r.met(c)...)
	if r.Mode == ModePlan && !harmless(c) {
		said = append(said, Verdict{Decision: event.DecisionDeny, Rule: ruleOfPlan, Reason: "the run is in plan mode, so nothing may be changed"})
	}
	said = append(said, r.files(c)...)
	for _, rule := range r.Rules {
		if applies, doubt := rule.applies(c); applies {
			said = append(said, Verdict{Decision: rule.Decision, Rule: rule.String(), Reason: rule.because(doubt)})
		}
	}
	if matchesAny(r.Gates, c.Tool) {
		said = append(said, Verdict{Decision: event.DecisionAsk, Rule: alwaysAsks(c.Tool)})
	}
	if risk := r.highRisk(c.Tool); risk != "" {
		said = append(said, Verdict{Decision: event.DecisionAsk, Rule: "risk: " + string(risk), Reason: c.Tool + " is declared to be irreversible"})
	}
	said = append(said, r.paths(c)...)
	said = append(said, r.unclear(c)...)
	said = append(said, r.hosts(c)...)
	said = append(said, r.permits(c)...)
	return append(said, r.unsandboxed(c, said)...)
}

// changed asks about a tool that is not what it was when the run began, before all
// other questions: a person decides about the call that they see.
func (r Rules) changed(c *event.ToolCall) []Verdict {
	if c.Facts == nil || c.Facts.Redefined == nil || slices.Contains(r.Redefined, c.Facts.Redefined.Digest) {
		return nil
	}
	return []Verdict{{
		Decision: event.DecisionAsk, Rule: "changed tool", Reason: c.Tool + " is not what it was when the run began: " + c.Facts.Redefined.Change,
	}}
}

// permits are the permissions that no rule of the owner's spells out.
func (r Rules) permits(c *event.ToolCall) []Verdict {
	var said []Verdict
	switch {
	case matchesAny(r.Open, c.Tool):
		said = append(said, Verdict{Decision: event.DecisionAllow, Rule: "tools.approvals." + c.Tool + ": never"})
	case r.Declared:
		said = append(said, Verdict{Decision: event.DecisionAllow, Rule: "tools.allow"})
	case slices.Contains(r.Named, c.Tool):
		said = append(said, Verdict{Decision: event.DecisionAllow, Rule: "tools.commands"})
	case matchesAny(r.Served, c.Tool):
		said = append(said, Verdict{Decision: event.DecisionAllow, Rule: "tools.mcp"})
	}
	switch {
	case r.Mode == ModeAcceptEdits && edits(c):
		said = append(said, Verdict{Decision: event.DecisionAllow, Rule: "mode: accept-edits"})
	case r.Mode == ModeBypass:
		said = append(said, Verdict{Decision: event.DecisionAllow, Rule: "mode: bypass"})
	}
	return said
}

func matchesAny(patterns []string, tool string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return MatchTool(p, tool) })
}

// highRisk is the harm that a tool is declared to do, of a pattern where none is
// declared for the tool itself.
func (r Rules) highRisk(tool string) event.Risk {
	if risk := r.HighRisk[tool]; risk != "" {
		return risk
	}
	first := ""
	for pattern := range r.HighRisk {
		if (first == "" || pattern < first) && MatchTool(pattern, tool) {
			first = pattern
		}
	}
	return r.HighRisk[first]
}

// harmless reports whether a call is known to change nothing.
func harmless(c *event.ToolCall) bool {
	if c.Facts != nil && (c.Facts.Risk != event.RiskRead && c.Facts.Risk != "" || len(c.Facts.Unclear) > 0) {
		return false
	}
	return c.ReadOnly || c.Facts != nil && c.Facts.Risk == event.RiskRead
}

// within reports whether a call is known to touch nothing outside the workspace.
func within(c *event.ToolCall) bool {
	return c.Facts == nil || len(c.Facts.Unclear) == 0 &&
		!slices.ContainsFunc(c.Facts.Paths, func(p event.PathUse) bool { return p.Outside || p.Unknown })
}

// edits reports whether a call is known to write files of the workspace and to do
// nothing else.
func edits(c *event.ToolCall) bool {
	return c.Facts != nil && c.Facts.Risk == event.RiskWrite && len(c.Facts.Paths) > 0 && within(c)
}

// alwaysAsks is how the rule signs that gates a tool.
func alwaysAsks(tool string) string { return "tools.approvals." + tool + ": always" }

// defaultAsks is how the default signs that asks.
const defaultAsks = "default: side effects ask"

// byDefault is for calls of which no rule says anything.
func byDefault(c *event.ToolCall) Verdict {
	if harmless(c) && within(c) {
		return Verdict{Decision: event.DecisionAllow, Rule: "default: read-only"}
	}
	return Verdict{
		Decision: event.DecisionAsk, Rule: defaultAsks,
		Reason: "the agent file names no tools.allow, so a call of a tool that can have side effects needs an approval",
	}
}
