package policy

import (
	"github.com/pawlrun/pawl/event"
)

// NoSandboxName is the rule name in verdicts about programs without a sandbox.
const NoSandboxName = "no sandbox"

// unsandboxed asks about a call that would start programs outside a sandbox. Such a
// program has the rights of the user: it can write the journal, kill the processes that
// drive the run, or make a service do so later. So it can approve any call of any run
// of the user, which would make every question worthless. An owner who configured that
// the tool never asks, or that nothing asks, has accepted this. An owner who listed the
// tool or allowed a command has not, because neither setting covers what the command
// may do to other calls. A call that is known to only read, or to only write files of
// the workspace, cannot approve anything.
func (r Rules) unsandboxed(c *event.ToolCall, verdicts []Verdict) []Verdict {
	if c.Facts == nil || !c.Facts.Unsandboxed || harmless(c) || edits(c) || !permitted(verdicts) || r.NeverAsks(c.Tool) {
		return nil
	}
	return []Verdict{{
		Decision: event.DecisionAsk, Rule: NoSandboxName,
		Reason: "without a sandbox a command has all your permissions, so it could approve calls in your place",
	}}
}

// permitted reports whether a call would run without a question and outside the
// sandbox.
func permitted(verdicts []Verdict) bool {
	return all(verdicts, func(v Verdict) bool { return v.Decision == event.DecisionAllow })
}

// NeverAsks reports whether the owner lets calls of a tool run without a question
// unless another rule asks.
func (r Rules) NeverAsks(tool string) bool {
	return matchesAny(r.Open, tool) || r.Mode == ModeBypass
}
