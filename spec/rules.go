package spec

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/egress"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/policy"
	"github.com/pawlrun/pawl/secret"
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
	if p.Path != "" {
		validatePattern(r, path+".path", p.Path)
	}
	if p.Command != "" {
		if why := noCommand(strings.Fields(p.Command)); why != "" {
			r.at(path+".command", "the words that a command begins with, such as git push", "%q %s", p.Command, why)
		}
	}
	if p.Host != "" && !matchesHosts(p.Host) {
		r.at(path+".host", "a host such as *.example.com, without a scheme or a port", "%q matches no host", p.Host)
	}
}

// noCommand says why no command can be what a rule names, or "". Such a rule
// would let everything past, too.
func noCommand(words []string) string {
	if len(words) == 0 {
		return "names no command"
	}
	if name, _, assigned := strings.Cut(words[0], "="); assigned && secret.ValidName(name) {
		return "begins with a variable, which is no part of a command"
	}
	for _, word := range words {
		switch {
		case slices.Contains([]string{"&&", "||", "|", ";", "&", ">", ">>", "<"}, word):
			return "has " + word + " in it, and a rule is about one command of a line"
		case strings.ContainsAny(word[:1], "'\""):
			return "has quotes in it, and words are compared without theirs"
		}
	}
	return ""
}

// matchesHosts says that a pattern can match a host as calls name it. One that
// cannot would let everything past a rule that denies.
func matchesHosts(pattern string) bool {
	host := strings.ToLower(strings.ReplaceAll(pattern, "*", "a"))
	canonical, err := egress.CanonicalHost(host)
	return err == nil && canonical == host
}
