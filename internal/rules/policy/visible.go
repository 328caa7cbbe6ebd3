package policy

import "github.com/pawlrun/pawl/event"

// Tool is what policy knows about a tool before any call.
type Tool struct {
	Name string
	// ReadOnly reports that no call changes anything. Risk is the harm that every call
	// is declared to do; empty means that it depends on the call.
	ReadOnly bool
	Risk     event.Risk
	// Judged reports that the tool returns facts about each call.
	Judged bool
	// Outgoing reports that its calls can reach other machines.
	Outgoing bool
	// Remote reports that its calls run on another machine.
	Remote bool
}

// Hides reports whether every call of a tool would be denied, and by which rule. A run
// does not offer such a tool, because the model would spend its turns on denials. In
// plan mode only the tools that a plan may use are offered.
func (r Rules) Hides(t Tool) (rule string, hidden bool) {
	changes := !t.ReadOnly && t.Risk != "" && t.Risk != event.RiskRead
	judged := t.Judged && !t.Remote
	mayOnlyReach := t.ReadOnly && t.Outgoing
	switch {
	case r.Mode == ModePlan && changes:
		return ruleOfPlan, true
	case r.Filesystem == FilesystemNone && judged && !mayOnlyReach, r.Filesystem == FilesystemReadOnly && judged && changes:
		return r.ruleOfFiles(), true
	}
	for _, rule := range r.Rules {
		if rule.Decision == event.DecisionDeny && wild(rule.Tool, t.Name) && rule.always() {
			return rule.String(), true
		}
	}
	return "", false
}

// always reports whether a rule matches every call of its tools.
func (r Rule) always() bool {
	return len(r.Args) == 0 && r.Path == "" && r.Host == "" && r.Command == ""
}

const ruleOfPlan = "mode: plan"

func (r Rules) ruleOfFiles() string { return "tools.permissions.filesystem: " + string(r.Filesystem) }
