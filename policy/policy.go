// Package policy decides whether a tool call may run: pure rules over what the
// driver resolved about it.
//
// Every rule that has something to say of a call says it; a denial wins over a
// question and a question over a permission, whichever of them is the more
// specific one or stands first. Only where no rule speaks do the defaults.
package policy

import (
	"slices"

	"github.com/pawlrun/pawl/egress"
	"github.com/pawlrun/pawl/event"
)

// Rules are the permissions of one run.
type Rules struct {
	// Declared is true when the owner named the tools that may be used. What
	// is there only by default asks before any side effect (PRODUCT 6).
	Declared bool `json:"declared,omitempty"`
	// Gates are the tools whose every call needs an approval.
	Gates []string `json:"gates,omitempty"`
	// HighRisk are the tools that are declared to do what cannot be taken back,
	// with the kind of harm; each call of them needs an approval (HAR-61).
	HighRisk map[string]event.Risk `json:"high_risk,omitempty"`
	// Open are the tools that never ask, though nobody named them in
	// tools.allow or no sandbox holds their programs. What is protected asks all
	// the same.
	Open []string `json:"open,omitempty"`
	// GateProtected are the tools that ask before they so much as look at a
	// protected path, and when it is not clear which paths they touch.
	GateProtected []string `json:"gate_protected,omitempty"`
	// Protected are the paths that are written with an approval only. Those of
	// [Builtin] are protected besides.
	Protected []Pattern `json:"protected,omitempty"`
	// Nested are those of the repositories within the workspace that were there
	// when the run began: a call that touches a whole tree with one of them in it
	// asks.
	Nested []Pattern `json:"nested,omitempty"`
	// Rules are the owner's own.
	Rules []Rule `json:"rules,omitempty"`
	Mode  Mode   `json:"mode,omitempty"`
	// Filesystem bounds what any call may do to files; empty bounds nothing
	// more than the workspace does.
	Filesystem Filesystem `json:"filesystem,omitempty"`
	// Network bounds the hosts that tools of Pawl's own may reach.
	Network egress.Rules `json:"network,omitzero"`
	// RuleOfTwo says what happens to an outgoing call once untrusted text and
	// private data have met; empty means [RuleOfTwoAsk].
	RuleOfTwo RuleOfTwo `json:"rule_of_two,omitempty"`
	// MaySend are the tools that the rule of two does not hold.
	MaySend []string `json:"may_send,omitempty"`
	// Taint is what the run has taken in so far. It is no setting: the run's
	// state goes in here for one decision.
	Taint event.Taint `json:"-"`
}

// Mode says what happens to calls that no rule of the owner's settles.
type Mode string

// The modes.
const (
	// ModeDefault: what the owner did not name asks before a side effect.
	ModeDefault Mode = "default"
	// ModeAcceptEdits: files inside the workspace are written without asking.
	ModeAcceptEdits Mode = "accept-edits"
	// ModePlan: every call that may change something is denied.
	ModePlan Mode = "plan"
	// ModeBypass: what would only ask because nobody named it, because it is
	// unclear, or because it runs without a sandbox, runs. Gates, protected
	// paths and denials hold.
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

// Builtin are the paths that are always protected: a repository's own files,
// which decide what later commands run, and Pawl's journals, in which a tool
// could otherwise approve its own calls.
func Builtin() []Pattern { return []Pattern{".git/**", ".pawl/**"} }

// nested protects the same of the repositories within a workspace. It is held
// against the names that a call touches: that it may hold such a name could be
// said of every tree.
const nested Pattern = "**/.git/**"

// Verdict is what one rule says of a call, or the decision with the rule that
// made it.
type Verdict struct {
	Decision event.Decision `json:"decision"`
	Rule     string         `json:"rule"`
	Reason   string         `json:"reason,omitempty"`
	// Sandbox says that some rule puts the call into the sandbox, whichever
	// rule decided whether it runs (HAR-36).
	Sandbox bool `json:"sandbox,omitempty"`
}

// Decide judges one resolved call.
func (r Rules) Decide(c *event.ToolCall) Verdict {
	v, _ := r.Explain(c)
	return v
}

// Explain judges a call and gives every rule that spoke, the strictest first.
// The first of them decided.
func (r Rules) Explain(c *event.ToolCall) (Verdict, []Verdict) {
	said := r.judge(c)
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
	said := r.met(c)
	if r.Mode == ModePlan && !harmless(c) {
		said = append(said, Verdict{Decision: event.DecisionDeny, Rule: ruleOfPlan, Reason: "the run is planning, so nothing may be changed"})
	}
	said = append(said, r.files(c)...)
	for _, rule := range r.Rules {
		if rule.applies(c) {
			said = append(said, Verdict{Decision: rule.Decision, Rule: rule.String(), Reason: rule.Reason})
		}
	}
	if slices.Contains(r.Gates, c.Tool) {
		said = append(said, Verdict{Decision: event.DecisionAsk, Rule: "tools.approvals." + c.Tool + ": always"})
	}
	if risk := r.HighRisk[c.Tool]; risk != "" {
		said = append(said, Verdict{Decision: event.DecisionAsk, Rule: "risk: " + string(risk), Reason: c.Tool + " is declared to do what cannot be taken back"})
	}
	said = append(said, r.paths(c)...)
	said = append(said, r.unclear(c)...)
	said = append(said, r.hosts(c)...)
	said = append(said, r.permits(c)...)
	return append(said, r.unsandboxed(c, said)...)
}

// permits are the permissions that no rule of the owner's spells out.
func (r Rules) permits(c *event.ToolCall) []Verdict {
	var said []Verdict
	switch {
	case slices.Contains(r.Open, c.Tool):
		said = append(said, Verdict{Decision: event.DecisionAllow, Rule: "tools.approvals." + c.Tool + ": never"})
	case r.Declared:
		said = append(said, Verdict{Decision: event.DecisionAllow, Rule: "tools.allow"})
	}
	switch {
	case r.Mode == ModeAcceptEdits && edits(c):
		said = append(said, Verdict{Decision: event.DecisionAllow, Rule: "mode: accept-edits"})
	case r.Mode == ModeBypass:
		said = append(said, Verdict{Decision: event.DecisionAllow, Rule: "mode: bypass"})
	}
	return said
}

// harmless says that a call is known to change nothing.
func harmless(c *event.ToolCall) bool {
	if c.Facts != nil && (c.Facts.Risk != event.RiskRead && c.Facts.Risk != "" || len(c.Facts.Unclear) > 0) {
		return false
	}
	return c.ReadOnly || c.Facts != nil && c.Facts.Risk == event.RiskRead
}

// within says that a call is known to touch nothing outside the workspace.
func within(c *event.ToolCall) bool {
	return c.Facts == nil || len(c.Facts.Unclear) == 0 &&
		!slices.ContainsFunc(c.Facts.Paths, func(p event.PathUse) bool { return p.Outside || p.Unknown })
}

// edits says that a call is known to write files of the workspace and to do
// nothing else.
func edits(c *event.ToolCall) bool {
	return c.Facts != nil && c.Facts.Risk == event.RiskWrite && len(c.Facts.Paths) > 0 && within(c)
}

// byDefault is for calls of which no rule says anything.
func byDefault(c *event.ToolCall) Verdict {
	if harmless(c) && within(c) {
		return Verdict{Decision: event.DecisionAllow, Rule: "default: read-only"}
	}
	return Verdict{
		Decision: event.DecisionAsk, Rule: "default: side effects ask",
		Reason: "the agent file names no tools.allow, so a call of a tool that can have side effects needs an approval",
	}
}
