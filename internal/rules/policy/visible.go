package policy

import "github.com/pawlrun/pawl/event"

// Tool is what policy can know of a tool before any call of it.
type Tool struct {
	Name string
	// ReadOnly says that no call changes anything, Risk what harm every call
	// can do where that is declared; empty means that it depends on the call.
	ReadOnly bool
	Risk     event.Risk
	// Judged says that the tool tells what each call touches.
	Judged bool
	// Outgoing says that its calls can reach other machines.
	Outgoing bool
}

// Hides reports whether every call of a tool would be denied, and by which rule. A
// model that is offered such a tool spends its turns on denials, so a run does
// not offer it: in a planning run only those tools are in view that a plan may
// use.
func (r Rules) Hides(t Tool) (rule string, hidden bool) {
	changes := !t.ReadOnly && t.Risk != "" && t.Risk != event.RiskRead
	mayOnlyReach := t.ReadOnly && t.Outgoing
	switch {
	case r.Mode == ModePlan && changes:
		return ruleOfPlan, true
	case r.Filesystem == FilesystemNone && t.Judged && !mayOnlyReach, r.Filesystem == FilesystemReadOnly && t.Judged && changes:
		return r.ruleOfFiles(), true
	}
	for _, rule := range r.Rules {
		if rule.Decision == event.DecisionDeny && wild(rule.Tool, t.Name) && rule.always() {
			return rule.String(), true
		}
	}
	return "", false
}

// always reports whether a rule is about every call of its tools.
func (r Rule) always() bool {
	return len(r.Args) == 0 && r.Path == "" && r.Host == "" && r.Command == ""
}

const ruleOfPlan = "mode: plan"

func (r Rules) ruleOfFiles() string { return "tools.permissions.filesystem: " + string(r.Filesystem) }
