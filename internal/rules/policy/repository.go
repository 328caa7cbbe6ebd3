package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

const (
	git       Pattern = ".git/**"
	ruleOfGit string  = "tools.permissions.git: deny"
)

// repository judges a call that writes a Git directory. A repository that the run
// created is not protected.
func (r Rules) repository(c *event.ToolCall, p event.PathUse) []Verdict {
	pattern, protected := r.protects(p)
	own := slices.Contains(r.Repositories, p.Path)
	switch {
	case p.Outside && !own:
		return outside(c.Facts, p)
	case !p.Outside && !protected && !p.Protected:
		return nil
	case r.Git == GitDeny:
		return []Verdict{{Decision: event.DecisionDeny, Rule: ruleOfGit, Reason: "the command writes the git repository " + p.Path}}
	case !p.Outside && protected && r.named(p):
		return r.protected(c.Tool, p, pattern)
	case r.Git == GitAllow, slices.ContainsFunc(r.Rules, func(rule Rule) bool { return rule.allowsGit(c) }),
		slices.ContainsFunc(r.Permissions, func(p event.Permission) bool {
			rule := permissionRule(p)
			return p.Line == "" && rule.allowsGit(c) && rule.permits(c)
		}):
		return nil
	}
	return []Verdict{{
		Decision: event.DecisionAsk, Rule: "protected_paths: " + string(git),
		Reason: "the command writes the git repository " + p.Path + " (tools.permissions.git: ask)",
	}}
}

// named reports whether one of the owner's protected paths covers the repository.
func (r Rules) named(p event.PathUse) bool {
	return slices.ContainsFunc(r.Protected, func(own Pattern) bool { return own.Guards(p.Path) })
}

// allowsGit reports whether the rule allows the call and names git.
func (r Rule) allowsGit(c *event.ToolCall) bool {
	words := strings.Fields(r.Command)
	if r.Decision != event.DecisionAllow || len(words) == 0 || path.Base(words[0]) != "git" {
		return false
	}
	applies, _ := r.applies(c)
	return applies
}
