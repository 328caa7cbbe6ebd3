package launch

import (
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/policy"
	"github.com/pawlrun/pawl/tool"
)

// offered are the tools that the model is told of, and those that it is not,
// because every call of theirs would be denied. Both are pinned when the run
// begins: the prefix of its requests never changes.
func offered(r policy.Rules, tools *tool.Set) ([]llm.ToolDef, []agent.HiddenTool) {
	var shown []llm.ToolDef
	var hidden []agent.HiddenTool
	for _, def := range tools.Defs() {
		if rule, hides := hides(r, tools, def.Name); hides {
			hidden = append(hidden, agent.HiddenTool{Tool: def.Name, Rule: rule})
			continue
		}
		shown = append(shown, def)
	}
	return shown, hidden
}

func hides(r policy.Rules, tools *tool.Set, name string) (string, bool) {
	t, known := tools.Lookup(name)
	if !known {
		return "", false
	}
	return r.Hides(policy.Tool{
		Name: t.Name, ReadOnly: t.ReadOnly, Risk: t.Risk, Judged: t.Facts != nil, Outgoing: t.Labels != nil && t.Labels.Outgoing,
	})
}
