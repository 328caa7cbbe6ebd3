package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Invalid is an error in a plan.
type Invalid struct {
	// At is the place, as the path of JSON: "steps[1].loop.body.steps[0]".
	At     string
	Reason string
}

// Error returns the place and the reason.
func (e *Invalid) Error() string { return e.At + ": " + e.Reason }

// Check returns all errors in a plan at once, as joined *[Invalid].
func (p *Plan) Check() error { return errors.Join(p.check("")...) }

func (p *Plan) check(at string) (wrong []error) {
	report := func(step int, format string, args ...any) {
		wrong = append(wrong, &Invalid{fmt.Sprintf("%ssteps[%d]", at, step), fmt.Sprintf(format, args...)})
	}
	places := map[string]int{}
	for i, s := range p.Steps {
		if _, twice := places[s.ID]; twice {
			report(i, "the id %q is another step's too", s.ID)
		}
		places[s.ID] = i
	}
	if len(p.Steps) == 0 {
		wrong = append(wrong, &Invalid{at + "steps", "there is none"})
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, id := range s.DependsOn {
			if _, known := places[id]; !known {
				report(i, "it depends on %q, which is no step of the same plan", id)
			}
		}
		if n := s.kinds(); n != 1 {
			report(i, "it says %d things to do instead of one", n)
		}
		below := fmt.Sprintf("%ssteps[%d].", at, i)
		if s.Plan != nil {
			wrong = append(wrong, s.Plan.check(below+"plan.")...)
		}
		if s.Loop != nil {
			wrong = append(wrong, s.Loop.check(below+"loop.")...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Runs)) {
		inner := p.Runs[name].Plan
		wrong = append(wrong, inner.check(fmt.Sprintf("%sruns[%s].", at, name))...)
	}
	if step, cyclic := p.cycle(places); cyclic {
		report(step, "it depends on itself, through others")
	}
	return wrong
}

func (s *Step) kinds() (n int) {
	for _, set := range []bool{s.Agent != nil, s.Func != nil, s.Command != nil, s.Run != nil, s.Plan != nil, s.Loop != nil} {
		if set {
			n++
		}
	}
	return n
}

func (l *Loop) check(at string) []error {
	wrong := l.Body.check(at + "body.")
	if l.Single && len(l.Body.Steps) != 1 {
		wrong = append(wrong, &Invalid{at + "body", fmt.Sprintf("a loop of the step itself has one step, not %d", len(l.Body.Steps))})
	}
	if l.Items != nil && (len(l.StopWhen) > 0 || l.Delay > 0 || l.Max > 0) {
		wrong = append(wrong, &Invalid{at + "items", "a loop over items has no cap, no delay and nothing to stop it"})
	}
	if l.Body.Timeout > 0 {
		wrong = append(wrong, &Invalid{at + "body", "an iteration has no timeout, only its steps and the whole loop have"})
	}
	if g := l.Goal; g != nil && (l.Items != nil || len(l.StopWhen) == 0 || l.Carry.Log == nil || g.Reviewer == "") {
		wrong = append(wrong, &Invalid{at + "goal", "a goal has no items; it has what shows that it is done, a log and a reviewer"})
	}
	return wrong
}

// cycle returns a step that depends on itself.
func (p *Plan) cycle(places map[string]int) (step int, found bool) {
	const open, closed = 1, 2
	marks := make([]int, len(p.Steps))
	var visit func(i int) bool
	visit = func(i int) bool {
		marks[i] = open
		for _, id := range p.Steps[i].DependsOn {
			d, known := places[id]
			if known && (marks[d] == open || marks[d] == 0 && visit(d)) {
				return true
			}
		}
		marks[i] = closed
		return false
	}
	for i := range p.Steps {
		if marks[i] == 0 && visit(i) {
			return i, true
		}
	}
	return 0, false
}
