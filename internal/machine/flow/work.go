package flow

import (
	"strconv"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/refine"
)

// work tracks the progress of a loop's iterations.
type work struct {
	// tree is the hash of the workspace after the last iteration. passing is the number
	// of passing tests that the checking commands reported, or empty if unknown.
	tree, passing string
	// answer is the answer of the last iteration.
	answer string
	// unchanged is the number of consecutive iterations that changed nothing.
	unchanged int
	changed   bool
}

// compare folds the hash of the workspace after an iteration.
func (w *work) compare(tree string) {
	w.changed = tree == "" || tree != w.tree
	w.tree = tree
}

// answered folds the answer of an iteration. A new answer counts as progress if the
// agent cannot change anything else.
func (l *loop) answered(answer string) {
	if l.plan.OnlyAnswers && answer != l.answer {
		l.changed = true
	}
	l.answer = answer
}

// tested folds the output of a command that checks the iteration.
func (w *work) tested(output string) {
	n, known := refine.Passing(output)
	if passing := strconv.Itoa(n); known && passing != w.passing {
		w.changed, w.passing = true, passing
	}
}

// stuck counts a checked iteration and reports whether too many in a row changed
// nothing.
func (l *loop) stuck() bool {
	if l.unchanged++; l.changed {
		l.unchanged = 0
	}
	return l.plan.StuckAfter > 0 && l.unchanged >= l.plan.StuckAfter
}

// observe is like [Machine.record], for an iteration with the hash of the workspace.
func (m *Machine) observe(key string, d event.Data, then func(event.Data)) *request {
	return m.requests.add(key, func() []machine.Action { return []machine.Action{machine.Observe{Iteration: d.(event.Iteration)}} }, then)
}
