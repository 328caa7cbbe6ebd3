// Package policy decides whether a tool call may run: pure rules over what the
// driver resolved about it.
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
	// tools.allow.
	Open []string `json:"open,omitempty"`
}

// Verdict is a decision with the rule that made it.
type Verdict struct {
	Decision event.Decision
	Rule     string
	Reason   string
}

// Decide judges one resolved call.
func (r Rules) Decide(c *event.ToolCall) Verdict {
	for _, tool := range r.Gates {
		if tool == c.Tool {
			return Verdict{Decision: event.DecisionAsk, Rule: "tools.approvals." + tool + ": always"}
		}
	}
	switch {
	case slices.Contains(r.Open, c.Tool):
		return Verdict{Decision: event.DecisionAllow, Rule: "tools.approvals." + c.Tool + ": never"}
	case r.Declared:
		return Verdict{Decision: event.DecisionAllow, Rule: "tools.allow"}
	case c.ReadOnly:
		return Verdict{Decision: event.DecisionAllow, Rule: "default: read-only"}
	}
	return Verdict{
		Decision: event.DecisionAsk, Rule: "default: side effects ask",
		Reason: "the agent file names no tools.allow, so a call with side effects needs an approval",
	}
}
