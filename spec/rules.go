package spec

import (
	"strings"

	"github.com/pawlrun/pawl/egress"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/policy"
)

// Policy is the rule as policy judges by it.
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

func (p Rule) validate(r *report, path string, t *Tools, o Options) {
	given := 0
	for _, tool := range []string{p.Allow, p.Ask, p.Deny, p.Sandbox} {
		if tool != "" {
			given++
		}
	}
	if given != 1 {
		r.at(path, "one of allow, ask, deny and sandbox, with the name of a tool", "has %d of them", given)
	}
	for _, named := range []struct{ key, tool string }{{"allow", p.Allow}, {"ask", p.Ask}, {"deny", p.Deny}, {"sandbox", p.Sandbox}} {
		if named.tool != "" && !strings.Contains(named.tool, "*") {
			t.known(r, path+"."+named.key, named.tool, o)
		}
	}
	if p.Path != "" && !policy.Pattern(p.Path).Valid() {
		r.at(path+".path", "a pattern such as docs/** or **/*.pem", "%q is not a pattern", p.Path)
	}
	if p.Host != "" && !matchesHosts(p.Host) {
		r.at(path+".host", "a host such as *.example.com, without a scheme or a port", "%q matches no host", p.Host)
	}
}

// matchesHosts says that a pattern can match a host as calls name it. One that
// cannot would let everything past a rule that denies.
func matchesHosts(pattern string) bool {
	host := strings.ToLower(strings.ReplaceAll(pattern, "*", "a"))
	canonical, err := egress.CanonicalHost(host)
	return err == nil && canonical == host
}
