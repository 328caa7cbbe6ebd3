package policy

import (
	"slices"

	"github.com/pawlrun/pawl/event"
)

// NoSandboxName is how the rule about programs without a sandbox signs its
// verdicts.
const NoSandboxName = "no sandbox"

// unsandboxed asks about a call that would start programs outside a sandbox
// while other calls ask. Such a program has the rights of the user: it can write
// the journal itself, kill those who drive the run, or have a service of the
// user do either later. So it can decide about every call that asks, and the
// owner's gates would be worth nothing if it started unseen. Who wrote
// that the tool never asks, or that nothing does, has answered; a rule that
// permits a command has not, because it says nothing of what the command may do
// to other calls. What is known only to look, or only to write files of the
// workspace, cannot decide.
func (r Rules) unsandboxed(c *event.ToolCall, said []Verdict) []Verdict {
	if c.Facts == nil || !c.Facts.Unsandboxed || harmless(c) || edits(c) || !permitted(said) || !r.Asks() || r.NeverAsks(c.Tool) {
		return nil
	}
	return []Verdict{{
		Decision: event.DecisionAsk, Rule: NoSandboxName,
		Reason: "without a sandbox a command could decide about other calls, and some of them ask",
	}}
}

// permitted says that a call would run unasked, and not in the sandbox.
func permitted(said []Verdict) bool {
	return all(said, func(v Verdict) bool { return v.Decision == event.DecisionAllow })
}

// Asks says that a person is asked about some calls for another reason than
// that they touch what is protected or outside, are unclear or, once untrusted
// text has come in, can send: the owner gated them, never named them, or has a
// hook that may ask about them.
func (r Rules) Asks() bool {
	return !r.Declared && r.Mode != ModeBypass || r.OthersAsk || len(r.Gates) > 0 || len(r.GateProtected) > 0 || len(r.HighRisk) > 0 ||
		slices.ContainsFunc(r.Rules, func(rule Rule) bool { return rule.Decision == event.DecisionAsk })
}

// NeverAsks says that the owner wants calls of a tool to run without a
// question, whatever they do besides.
func (r Rules) NeverAsks(tool string) bool {
	return slices.Contains(r.Open, tool) || r.Mode == ModeBypass
}
