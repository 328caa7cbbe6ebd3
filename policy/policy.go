// Package policy decides whether a tool call may run: pure rules over what the
// driver resolved about it.
//
// Every rule that has something to say of a call says it; a denial wins over a
// question and a question over a permission, whichever of them is the more
// specific one or stands first. Only where no rule speaks do the defaults.
package policy

import (
	"slices"

	"github.com/pawlrun/pawl/event"
)

// Rules are the permissions of one run.
type Rules struct {
	// Declared is true when the owner named the tools that may be used. What
	// is there only by default asks before any side effect (PRODUCT 6).
	Declared bool `json:"declared,omitempty"`
	// Gates are the tools whose every call needs an approval.
	Gates []string `json:"gates,omitempty"`
	// Open are the tools that never ask, though nobody named them in
	// tools.allow. What is protected asks all the same.
	Open []string `json:"open,omitempty"`
	// GateProtected are the tools that ask before they so much as look at a
	// protected path, and when it is not clear which paths they touch.
	GateProtected []string `json:"gate_protected,omitempty"`
	// Protected are the paths that are written with an approval only. Those of
	// [Builtin] are protected besides.
	Protected []Pattern `json:"protected,omitempty"`
}

// Builtin are the paths that are always protected: a repository's own files,
// which decide what later commands run, and Pawl's journals, in which a tool
// could otherwise approve its own calls.
func Builtin() []Pattern { return []Pattern{".git/**", ".pawl/**"} }

// Verdict is what one rule says of a call, or the decision with the rule that
// made it.
type Verdict struct {
	Decision event.Decision `json:"decision"`
	Rule     string         `json:"rule"`
	Reason   string         `json:"reason,omitempty"`
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
	slices.SortStableFunc(said, func(a, b Verdict) int { return strictness(b.Decision) - strictness(a.Decision) })
	if len(said) == 0 {
		said = []Verdict{byDefault(c)}
	}
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
	var said []Verdict
	if slices.Contains(r.Gates, c.Tool) {
		said = append(said, Verdict{Decision: event.DecisionAsk, Rule: "tools.approvals." + c.Tool + ": always"})
	}
	said = append(said, r.paths(c)...)
	switch {
	case slices.Contains(r.Open, c.Tool):
		said = append(said, Verdict{Decision: event.DecisionAllow, Rule: "tools.approvals." + c.Tool + ": never"})
	case r.Declared:
		said = append(said, Verdict{Decision: event.DecisionAllow, Rule: "tools.allow"})
	}
	return said
}

// byDefault is for calls of which no rule says anything.
func byDefault(c *event.ToolCall) Verdict {
	if c.ReadOnly {
		return Verdict{Decision: event.DecisionAllow, Rule: "default: read-only"}
	}
	return Verdict{
		Decision: event.DecisionAsk, Rule: "default: side effects ask",
		Reason: "the agent file names no tools.allow, so a call with side effects needs an approval",
	}
}
