package policy

import (
	"path"
	"slices"

	"github.com/pawlrun/pawl/event"
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
