package policy

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// unclear asks about a call of which it is not known what it does or which
// file it writes: some rule might forbid it. An owner who said that the tool
// never asks, or that nothing does, has answered, as long as the same owner
// protects nothing that the call might touch.
func (r Rules) unclear(c *event.ToolCall) []Verdict {
	if c.Facts == nil {
		return nil
	}
	why := slices.Clone(c.Facts.Unclear)
	reads := false
	for _, p := range c.Facts.Paths {
		if p.Unknown && p.Write {
			why = append(why, "which file "+p.Path+" is, is computed when it runs")
		}
		reads = reads || p.Unknown
	}
	if slices.Contains(r.GateProtected, c.Tool) && (reads || len(why) > 0) {
		return []Verdict{{
			Decision: event.DecisionAsk, Rule: "tools.approvals." + c.Tool + ": protected_paths",
			Reason: strings.Join(append(why, "the call may touch what is protected"), "; "),
		}}
	}
	if len(why) == 0 || r.NeverAsks(c.Tool) && !r.guards() {
		return nil
	}
	return []Verdict{{Decision: event.DecisionAsk, Rule: "unclear", Reason: strings.Join(why, "; ")}}
}

// guards reports whether the owner protects something that an unclear call might
// touch.
func (r Rules) guards() bool {
	return len(r.Protected) > 0 || slices.ContainsFunc(r.Rules, func(rule Rule) bool { return rule.Decision != event.DecisionAllow })
}

// files holds calls to the bound on files. What runs programs is not held by a
// bound unless it is known to read the workspace alone.
func (r Rules) files(c *event.ToolCall) []Verdict {
	deny := func(why string) []Verdict {
		return []Verdict{{Decision: event.DecisionDeny, Rule: r.ruleOfFiles(), Reason: why}}
	}
	switch {
	case c.Facts == nil, reaches(c):
	case r.Filesystem == FilesystemNone:
		return deny("the run has no access to files")
	case r.Filesystem != FilesystemReadOnly:
	case !harmless(c):
		return deny("the call is not known to change nothing")
	case !within(c):
		return deny("the call is not known to read the workspace alone")
	case len(c.Facts.Commands) > 0 && !r.Declared:
		return deny("commands run only where tools.allow names the tool")
	}
	return nil
}
