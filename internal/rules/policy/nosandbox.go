package policy

import (
	"github.com/pawlrun/pawl/event"
)

// NoSandboxName is how the rule about programs without a sandbox signs its
// verdicts.
const NoSandboxName = "no sandbox"

// unsandboxed asks about a call that would start programs outside a sandbox.
// Such a program has the rights of the user: it can write the journal itself,
// kill those who drive the run, or have a service of the user do either later.
// So it can decide about any call of any run of the user's, and no question
// would be worth anything if it started unseen. Who wrote that the tool never
// asks, or that nothing does, has answered; who named the tool, or permitted a
// command, has not, because neither says anything of what the command may do to
// other calls. What is known only to look, or only to write files of the
// workspace, cannot decide.
func (r Rules) unsandboxed(c *event.ToolCall, said []Verdict) []Verdict {
	if c.Facts == nil || !c.Facts.Unsandboxed || harmless(c) || edits(c) || !permitted(said) || r.NeverAsks(c.Tool) {
		return nil
	}
	return []Verdict{{
		Decision: event.DecisionAsk, Rule: NoSandboxName,
		Reason: "without a sandbox a command has all your permissions, so it could approve calls in your place",
	}}
}

// permitted reports whether a call would run unasked, and not in the sandbox.
func permitted(said []Verdict) bool {
	return all(said, func(v Verdict) bool { return v.Decision == event.DecisionAllow })
}

// NeverAsks reports whether the owner wants calls of a tool to run without
// asking where nothing else asks.
func (r Rules) NeverAsks(tool string) bool {
	return matchesAny(r.Open, tool) || r.Mode == ModeBypass
}
