package launch

import (
	"cmp"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
)

// shellTool is the tool that runs commands.
const shellTool = machine.CommandTool

// exposes reports whether there are commands which run outside a sandbox.
func (c confinement) exposes(tools *tool.Set) bool {
	_, runs := tools.Lookup(shellTool)
	return runs && !c.inside()
}

// undecided warns of commands that run outside a sandbox without a question
// because the file says so.
func (c confinement) undecided(r policy.Rules, tools *tool.Set) []string {
	if !c.exposes(tools) {
		return nil
	}
	program := event.ToolCall{Tool: shellTool, Facts: &event.Facts{
		Risk: event.RiskExecute, Unsandboxed: true, Commands: []event.Command{{Words: []string{"some-program"}}},
	}}
	if r.Decide(&program).Decision != event.DecisionAllow {
		return nil
	}
	key := "tools.approvals." + shellTool + ": never"
	if r.Mode == policy.ModeBypass {
		key = "tools.mode: bypass"
	}
	return []string{fmt.Sprintf("%s: commands run without approval and without a sandbox (%s); such a command could approve calls in your place",
		key, cmp.Or(c.why, "on-demand"))}
}
