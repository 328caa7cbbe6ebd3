package launch

import (
	"cmp"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/policy"
	"github.com/pawlrun/pawl/tool"
)

// undecided warns of commands that run outside a sandbox without a question
// because the file says so.
func (c confinement) undecided(r policy.Rules, tools *tool.Set) []string {
	const shell = "shell.exec"
	if _, runs := tools.Lookup(shell); !runs || c.inside() {
		return nil
	}
	program := event.ToolCall{Tool: shell, Facts: &event.Facts{
		Risk: event.RiskExecute, Unsandboxed: true, Commands: []event.Command{{Words: []string{"some-program"}}},
	}}
	if r.Decide(&program).Decision != event.DecisionAllow {
		return nil
	}
	key := "tools.approvals." + shell + ": never"
	if r.Mode == policy.ModeBypass {
		key = "tools.mode: bypass"
	}
	return []string{fmt.Sprintf("%s: commands run unasked and outside a sandbox (%s), where one could decide about calls in your place",
		key, cmp.Or(c.why, "on-demand"))}
}
