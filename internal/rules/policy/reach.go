package policy

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
)

// paths judges what a call touches. A write outside the workspace or to a protected
// path asks, even if another rule permits the call.
func (r Rules) paths(c *event.ToolCall) []Verdict {
	if c.Facts == nil {
		return nil
	}
	var verdicts []Verdict
	for _, p := range c.Facts.Paths {
		if p.Unknown {
			continue
		}
		if p.Repository {
			verdicts = append(verdicts, r.repository(c, p)...)
			continue
		}
		if p.Outside {
			verdicts = append(verdicts, outside(c.Facts, p)...)
		}
		if pattern, ok := r.protects(p); ok {
			verdicts = append(verdicts, r.protected(c.Tool, p, pattern)...)
		} else if p.Protected {
			verdicts = append(verdicts, Verdict{Decision: event.DecisionAsk, Rule: "protected_paths", Reason: p.Path + " is protected by the sandbox"})
		}
	}
	return verdicts
}

func outside(f *event.Facts, p event.PathUse) []Verdict {
	switch {
	case f.Confined:
		return []Verdict{{
			Decision: event.DecisionDeny, Rule: "workspace", Reason: p.Path + " is outside the workspace, and this tool works inside it only",
		}}
	case p.Write && !p.Scratch:
		return []Verdict{{Decision: event.DecisionAsk, Rule: "workspace", Reason: p.Path + " is outside the workspace"}}
	}
	return nil
}

func (r Rules) protected(tool string, p event.PathUse, pattern Pattern) []Verdict {
	reason := p.Path + " is protected"
	switch {
	case p.Pattern:
		reason = p.Path + " may stand for what is protected"
	case p.Tree && !pattern.Guards(p.Path):
		reason = p.Path + " may hold what is protected"
	}
	switch {
	case p.Write || p.Given:
		return []Verdict{{Decision: event.DecisionAsk, Rule: "protected_paths: " + string(pattern), Reason: reason}}
	case matchesAny(r.GateProtected, tool):
		return []Verdict{{Decision: event.DecisionAsk, Rule: "tools.approvals." + tool + ": protected_paths", Reason: reason}}
	}
	return nil
}

// protects returns the pattern that protects a path, or something below it if the call
// touches the whole tree.
func (r Rules) protects(p event.PathUse) (Pattern, bool) {
	for _, pattern := range slices.Concat(r.Protected, Builtin()) {
		if p.Alias && pattern.single() && pattern.Guards(path.Dir(p.Path)) {
			// The pattern may match only a link on the way to a file; other files that
			// the link leads to are not protected by it.
			continue
		}
		if pattern.parts().touches(p) {
			return pattern, true
		}
	}
	// An argument of a program may be a tree to copy, or a pattern of the program's
	// own, such as */.git/* to exclude.
	held := p.Write || !p.Given
	for _, pattern := range r.Nested {
		if pattern.parts().guards(nameParts(p.Path)) || held && pattern.parts().touches(p) {
			return pattern, true
		}
	}
	p.Tree = false
	return nested, held && !p.Repository && nested.parts().touches(p)
}

// hosts applies the limits on the network to a call that only reaches other machines.
// The sandbox limits programs, and the dialer checks the address that a name resolves
// to.
func (r Rules) hosts(c *event.ToolCall) []Verdict {
	if !reaches(c) {
		return nil
	}
	var verdicts []Verdict
	for i, host := range c.Facts.Hosts {
		_, err := r.Network.Host(host, c.Facts.Port(i))
		if refusal, ok := errors.AsType[*egress.Refusal](err); ok {
			verdicts = append(verdicts, Verdict{Decision: event.DecisionDeny, Rule: refusal.Rule, Reason: c.Facts.HostPort(i) + " may not be reached: " + refusal.Why})
		}
	}
	return verdicts
}

// reaches reports whether a call is known to reach other machines and to do nothing
// else.
func reaches(c *event.ToolCall) bool {
	return c.ReadOnly && c.Labels.Outgoing && c.Facts != nil && c.Facts.Risk == event.RiskSend &&
		len(c.Facts.Paths) == 0 && len(c.Facts.Commands) == 0
}

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
