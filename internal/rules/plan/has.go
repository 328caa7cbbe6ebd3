package plan

import (
	"slices"
	"strings"
)

// HasCommands reports whether a step of the plan, or a condition that ends a loop, is a
// program.
func (p *Plan) HasCommands() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		return s.Command != nil || s.Plan != nil && s.Plan.HasCommands() ||
			s.Loop != nil && (s.Loop.Body.HasCommands() || slices.ContainsFunc(s.Loop.Checks(), func(stop Stop) bool { return stop.Command != nil }))
	})
}

// Has reports whether an id in a run, or a bare name, is that of a step of the plan,
// whichever iteration or item it names.
func (p *Plan) Has(id string) bool {
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.ID == id || s.Plan != nil && s.Plan.Has(id) || s.Loop != nil && !s.Loop.Single && s.Loop.Body.Has(id) {
			return true
		}
		rest, below := strings.CutPrefix(id, s.ID)
		switch {
		case !below || rest == "":
		case s.Plan != nil && rest[0] == '.' && s.Plan.Has(rest[1:]):
			return true
		case s.Loop != nil && s.Loop.has(rest):
			return true
		}
	}
	return false
}

// has reports whether the rest after a loop's id names a step of a pass.
func (l *Loop) has(rest string) bool {
	before, after := ".", "."
	if l.Items != nil {
		before, after = "[", "]"
	}
	number, ok := strings.CutPrefix(rest, before)
	if !ok {
		return false
	}
	digits, inner, _ := strings.Cut(number, after)
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return false
	}
	inner = strings.TrimPrefix(inner, ".")
	return l.Single && inner == "" || !l.Single && l.Body.Has(inner)
}
