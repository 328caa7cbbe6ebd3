// Package policy decides whether a tool call may run. Its rules are pure functions of
// the facts that the driver resolved about the call.
//
// It considers all rules that match a call. A denial takes precedence over a question,
// and a question over a permission, regardless of their order and specificity. The
// defaults apply only if no rule matches.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
)

// Rules are the permissions of one run. Where they list tools, a name may be a pattern
// (see [MatchTool]).
type Rules struct {
	// Declared reports whether the owner listed the tools that may be used. Other tools
	// ask before any side effect.
	Declared bool `json:"declared,omitempty"`
	// Named are tools that the owner named outside that list; their calls are permitted
	// as if the list contained them.
	Named []string `json:"named,omitempty"`
	// Served are patterns for tools of servers that the owner allowed with the servers.
	Served []string `json:"served,omitempty"`
	// Gates are the tools whose calls always need an approval.
	Gates []string `json:"gates,omitempty"`
	// HighRisk are the tools that are declared to be irreversible, with the kind of
	// harm; each of their calls needs an approval.
	HighRisk map[string]event.Risk `json:"high_risk,omitempty"`
	// Open are the tools that never ask, even if tools.allow does not name them or
	// their programs run without a sandbox. Protected paths still ask.
	Open []string `json:"open,omitempty"`
	// GateProtected are the tools that ask even before reading a protected path,
	// and when it is not clear which paths they touch.
	GateProtected []string `json:"gate_protected,omitempty"`
	// Protected are the paths that a call may write only with an approval, besides
	// those of [Builtin].
	Protected []Pattern `json:"protected,omitempty"`
	// Nested are the .git directories within the workspace that existed when the run
	// began. A call that touches a whole tree with one of them in it asks.
	Nested []Pattern `json:"nested,omitempty"`
	// Git decides about calls that write a repository of the workspace; empty means
	// [GitAsk].
	Git Git `json:"git,omitempty"`
	// Repositories are the directories outside the workspace that belong to its
	// repository: the main repository of a linked worktree, or the parents of a
	// subdirectory.
	Repositories []string `json:"repositories,omitempty"`
	// Rules are the owner's own.
	Rules []Rule `json:"rules,omitempty"`
	Mode  Mode   `json:"mode,omitempty"`
	// Filesystem limits what any call may do to files; empty adds no limit.
	Filesystem Filesystem `json:"filesystem,omitempty"`
	// Network limits the hosts that Pawl's own tools may reach.
	Network egress.Rules `json:"network,omitzero"`
	// RuleOfTwo decides about outgoing calls once the run has read untrusted text and
	// private data; empty means [RuleOfTwoAsk].
	RuleOfTwo RuleOfTwo `json:"rule_of_two,omitempty"`
	// MaySend are the tools that the rule of two does not apply to.
	MaySend []string `json:"may_send,omitempty"`
	// Taint is what the run has read so far. It is not a setting: it is the run's
	// state, for one decision.
	Taint event.Taint `json:"-"`
	// Redefined are the digests of changed definitions of tools that a person approved;
	// like Taint they are the run's state.
	Redefined []string `json:"-"`
	// Granted are what a person allowed or denied earlier in the session of the run.
	Granted []event.Permission `json:"granted,omitempty"`
	// Permissions are what a person allowed for the rest of the run. Like Taint
	// they are the run's state, not a setting; see [Rules.With].
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

// The bounds. A bound that a program could evade without a sandbox denies the calls
// that run programs.
const (
	FilesystemNone     Filesystem = "none"
	FilesystemReadOnly Filesystem = "repo-readonly"
)

// Git decides about calls that write a repository of the workspace, except its settings
// and hooks, which always ask.
type Git string

// The values of Git.
const (
	// GitAsk: such calls ask, unless a rule allows the git command by name.
	GitAsk   Git = "ask"
	GitAllow Git = "allow"
	GitDeny  Git = "deny"
)

// Builtin returns the paths that are always protected: a repository's own files,
// because they decide what later commands run, and Pawl's journals, because a tool
// could approve its own calls in them.
func Builtin() []Pattern { return []Pattern{".git/**", ".pawl/**"} }

// nested protects the same paths of repositories within the workspace. It applies to
// names that a call touches, not to whole trees, because any tree could contain such a
// name.
const nested Pattern = "**/.git/**"

// Verdict is the answer of one rule about a call. The decision is the strictest
// verdict.
type Verdict struct {
	Decision event.Decision `json:"decision"`
	Rule     string         `json:"rule"`
	Reason   string         `json:"reason,omitempty"`
	// Sandbox reports whether some rule requires the sandbox for the call, whichever
	// rule decides.
	Sandbox bool `json:"sandbox,omitempty"`
}

// Decide judges a resolved call.
func (r Rules) Decide(c *event.ToolCall) Verdict {
	v, _ := r.Explain(c)
	return v
}

// Explain judges a call and returns the decision and the answers of all rules that
// match, strictest first.
func (r Rules) Explain(c *event.ToolCall) (Verdict, []Verdict) {
	verdicts := r.personal(c, r.judge(c))
	boxed := slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Decision == event.DecisionSandbox })
	if boxed && !slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Decision == event.DecisionAllow }) {
		// A rule about where a call runs does not permit the call.
		verdicts = append(verdicts, byDefault(c))
	}
	slices.SortStableFunc(verdicts, func(a, b Verdict) int { return strictness(b.Decision) - strictness(a.Decision) })
	if len(verdicts) == 0 {
		verdicts = []Verdict{byDefault(c)}
	}
	verdicts[0].Sandbox = boxed
	return verdicts[0], verdicts
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
	verdicts := append(r.changed(c), r.met(c)...)
	if r.Mode == ModePlan && !harmless(c) {
		verdicts = append(verdicts, Verdict{Decision: event.DecisionDeny, Rule: ruleOfPlan, Reason: "the run is in plan mode, so nothing may be changed"})
	}
	verdicts = append(verdicts, r.files(c)...)
	for _, rule := range r.Rules {
		if applies, doubt := rule.applies(c); applies {
			verdicts = append(verdicts, Verdict{Decision: rule.Decision, Rule: rule.String(), Reason: rule.because(doubt)})
		}
	}
	if matchesAny(r.Gates, c.Tool) {
		verdicts = append(verdicts, Verdict{Decision: event.DecisionAsk, Rule: alwaysAsks(c.Tool)})
	}
	if risk := r.highRisk(c.Tool); risk != "" {
		verdicts = append(verdicts, Verdict{Decision: event.DecisionAsk, Rule: "risk: " + string(risk), Reason: c.Tool + " is declared to be irreversible"})
	}
	verdicts = append(verdicts, r.paths(c)...)
	verdicts = append(verdicts, r.unclear(c)...)
	verdicts = append(verdicts, r.hosts(c)...)
	verdicts = append(verdicts, r.permits(c)...)
	return append(verdicts, r.unsandboxed(c, verdicts)...)
}

// changed asks about a tool whose definition has changed since the run began. It comes
// before all other questions, because a person decides about the call as shown.
func (r Rules) changed(c *event.ToolCall) []Verdict {
	if c.Facts == nil || c.Facts.Redefined == nil || slices.Contains(r.Redefined, c.Facts.Redefined.Digest) {
		return nil
	}
	return []Verdict{{
		Decision: event.DecisionAsk, Rule: "changed tool", Reason: c.Tool + " is not what it was when the run began: " + c.Facts.Redefined.Change,
	}}
}

// permits returns the permissions that no rule of the owner spells out.
func (r Rules) permits(c *event.ToolCall) []Verdict {
	var verdicts []Verdict
	switch {
	case matchesAny(r.Open, c.Tool):
		verdicts = append(verdicts, Verdict{Decision: event.DecisionAllow, Rule: "tools.approvals." + c.Tool + ": never"})
	case r.Declared:
		verdicts = append(verdicts, Verdict{Decision: event.DecisionAllow, Rule: "tools.allow"})
	case slices.Contains(r.Named, c.Tool):
		verdicts = append(verdicts, Verdict{Decision: event.DecisionAllow, Rule: "tools.commands"})
	case matchesAny(r.Served, c.Tool):
		verdicts = append(verdicts, Verdict{Decision: event.DecisionAllow, Rule: "tools.mcp"})
	}
	switch {
	case r.Mode == ModeAcceptEdits && edits(c):
		verdicts = append(verdicts, Verdict{Decision: event.DecisionAllow, Rule: "mode: accept-edits"})
	case r.Mode == ModeBypass:
		verdicts = append(verdicts, Verdict{Decision: event.DecisionAllow, Rule: "mode: bypass"})
	}
	return verdicts
}

func matchesAny(patterns []string, tool string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return MatchTool(p, tool) })
}

// highRisk returns the harm that a tool is declared to do; a pattern applies only if
// the tool itself has no declaration.
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

// alwaysAsks returns the rule name in verdicts about a gated tool.
func alwaysAsks(tool string) string { return "tools.approvals." + tool + ": always" }

// defaultAsks is the rule name of the default that asks.
const defaultAsks = "default: side effects ask"

// byDefault judges a call that no rule matches.
func byDefault(c *event.ToolCall) Verdict {
	if harmless(c) && within(c) {
		return Verdict{Decision: event.DecisionAllow, Rule: "default: read-only"}
	}
	return Verdict{
		Decision: event.DecisionAsk, Rule: defaultAsks,
		Reason: "the agent file names no tools.allow, so a call of a tool that can have side effects needs an approval",
	}
}

// High reports whether a call of this risk is irreversible and so needs an approval
// record.
func High(r event.Risk) bool {
	switch r {
	case event.RiskDelete, event.RiskSend, event.RiskPermission, event.RiskFinancial:
		return true
	}
	return false
}

// Reading is the version of this package's interpretation of rules and facts. It
// changes whenever the same rules could decide differently about the same call, so that
// an approval does not apply under a policy that its giver did not know.
const Reading = "7"

// Version identifies the rules and their interpretation: "1/0f3a…".
func (r Rules) Version() string {
	text, _ := json.Marshal(r) // these types always encode
	sum := sha256.Sum256(text)
	return Reading + "/" + hex.EncodeToString(sum[:8])
}
