package launch

import (
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
)

// unmet says of those conditions of a valid file that no result can meet, by their
// places, why: a run that waits for one ends by a limit, and pays for all the cycles
// before.
func unmet(a *spec.Agent) map[int]string {
	all := offering(a, anyBuiltin())
	declare(all, a.Tools)
	tools, err := tool.NewSet(all...)
	if err != nil {
		return nil
	}
	said := policy.Rules{Mode: policy.Mode(a.Tools.Mode)}
	if p := a.Tools.Permissions; p != nil {
		said.Filesystem = policy.Filesystem(p.Filesystem)
	}
	for _, rule := range a.Tools.Rules {
		said.Rules = append(said.Rules, rule.Policy())
	}
	why := map[int]string{}
	for i, c := range a.Iteration.TerminationConditions {
		if c.Tool == "" {
			continue
		}
		_, has := tools.Lookup(c.Tool)
		rule, hidden := assembly.Hides(said, tools, c.Tool)
		switch {
		case !has:
			why[i] = "the agent has no " + c.Tool + ", because tools.allow does not name it"
		case hidden:
			why[i] = "every call of " + c.Tool + " is denied by " + rule
		case c.Match.ExitCode != nil && c.Tool != shellTool:
			why[i] = c.Tool + " gives no exit code"
		}
	}
	return why
}
