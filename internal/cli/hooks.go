package cli

import (
	"github.com/pawlrun/pawl/event"
)

// hookLine says in one line what a hook did. It is empty for one that was heard
// and let things go on.
func hookLine(d event.HookResult) string {
	did := ""
	switch {
	case d.Failed && d.Decision == event.HookBlock:
		did = "failed, and so blocks"
	case d.Failed:
		did = "failed"
	case d.Decision == event.HookBlock && d.Stage == event.HookAfterTool:
		did = "withheld the result"
	case d.Decision == event.HookBlock:
		did = "blocked"
	case d.Decision == event.HookRewrite && d.Stage == event.HookAfterTool:
		did = "replaced the output"
	case d.Decision == event.HookRewrite:
		did = "changed the arguments to " + string(d.Args)
	case d.Decision == event.HookAsk:
		did = "asks for a decision"
	default:
		return ""
	}
	line := "hook " + d.Hook + " " + did
	if d.Reason != "" {
		line += ": " + d.Reason
	}
	if d.CallID != "" {
		line = d.CallID + " " + line
	}
	return line
}
