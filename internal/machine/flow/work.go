package flow

import (
	"strconv"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/refine"
)

// work is what the iterations of a loop change.
type work struct {
	// tree is what the workspace held after the last iteration, passing how many tests
	// passed then, as far as the commands say that look at it; empty for not known.
	tree, passing string
	// answer is that of the last iteration.
	answer string
	// unchanged are the iterations in a row that changed nothing.
	unchanged int
	changed   bool
}

// compare takes in what the workspace holds after an iteration.
func (w *work) compare(tree string) {
	w.changed = tree == "" || tree != w.tree
	w.tree = tree
}

// answered takes in the answer of an iteration. It is progress where the agent can change
// nothing else.
func (l *loop) answered(answer string) {
	if l.plan.OnlyAnswers && answer != l.answer {
		l.changed = true
	}
	l.answer = answer
}

// tested takes in what a command printed that looked at the iteration.
func (w *work) tested(output string) {
	n, known := refine.Passing(output)
	if passing := strconv.Itoa(n); known && passing != w.passing {
		w.changed, w.passing = true, passing
	}
}

// stuck counts an iteration that has been looked at, and reports whether too many changed
// nothing.
func (l *loop) stuck() bool {
	if l.unchanged++; l.changed {
		l.unchanged = 0
	}
	return l.plan.StuckAfter > 0 && l.unchanged >= l.plan.StuckAfter
}

// observe is [Machine.record] of an iteration, with what the workspace holds then.
func (m *Machine) observe(key string, d event.Data, then func(event.Data)) *errand {
	return m.agenda.add(key, func() []machine.Action { return []machine.Action{machine.Observe{Iteration: d.(event.Iteration)}} }, then)
}
