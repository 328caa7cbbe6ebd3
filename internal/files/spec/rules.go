package spec

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// Policy converts the rule for package policy.
func (p Rule) Policy() policy.Rule {
	rule := policy.Rule{Args: p.Args, Path: policy.Pattern(p.Path), Host: p.Host, Command: p.Command, Reason: p.Reason}
	switch {
	case p.Deny != "":
		rule.Decision, rule.Tool = event.DecisionDeny, p.Deny
	case p.Ask != "":
		rule.Decision, rule.Tool = event.DecisionAsk, p.Ask
	case p.Sandbox != "":
		rule.Decision, rule.Tool = event.DecisionSandbox, p.Sandbox
	default:
		rule.Decision, rule.Tool = event.DecisionAllow, p.Allow
	}
	return rule
}

func (p Rule) validate(r *decode.Report, path string, t *Tools, o Options) {
	decode.Single(r, path, "one of allow, ask, deny and sandbox, with the name of a tool", p.Allow != "", p.Ask != "", p.Deny != "", p.Sandbox != "")
	for _, named := range []struct{ key, tool string }{{"allow", p.Allow}, {"ask", p.Ask}, {"deny", p.Deny}, {"sandbox", p.Sandbox}} {
		if named.tool == "" || !strings.Contains(named.tool, "*") && !t.known(r, path+"."+named.key, named.tool, o) {
			continue
		}
		if o.Offers != nil && !slices.ContainsFunc(o.Offers(t), func(name string) bool { return policy.MatchTool(named.tool, name) }) {
			r.Warn(path+"."+named.key, "the file offers no tool %s, so the rule decides nothing", named.tool)
		}
	}
	p.Policy().Check(func(key string) policy.Report { return reporting(r, path+"."+key) })
}

// reporting reports the problems of one place.
func reporting(r *decode.Report, path string) policy.Report {
	return func(expected, format string, args ...any) { r.At(path, expected, format, args...) }
}
