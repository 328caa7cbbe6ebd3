package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/eval"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// scope is a graph that is being carried out: the run's plan, a plan in a step, or
// one pass of a loop.
type scope struct {
	graph *graph
	// in is the step that it is in, nil for the run's plan, and pass the loop's pass
	// that it is, nil for none.
	in   *node
	pass *pass
	// id is what the ids of its steps begin with, and key the same for the names that
	// no two attempts share.
	id, key string
	steps   []*node
	// open are the steps without an end, under those that are under way, and busy
	// the children at work below, of which limit is how many there may be.
	open, under, busy, limit int

	ready  ready
	hungry queue[*node]
	// failed is the first step that failed, and stopped says that all are to end.
	failed  *node
	stopped bool
}

// phase is where a step stands.
type phase uint8

const (
	// waiting for the steps that it depends on, or for its condition.
	waiting phase = iota
	// queued: nothing but room is lacking.
	queued
	working
	// ending: its end is decided and not journalled.
	ending
	settled
)

// node is a step of a scope.
type node struct {
	in     *scope
	vertex *vertex
	place  int
	id     string
	phase  phase
	left   int
	// attempt counts from 1 once it was begun.
	attempt int
	hungry  bool
	// counts says that it is one of those of its scope that are under way.
	counts bool
	// errand is the key of what is wanted for it.
	errand string
	// mail is what others said to it.
	mail mailbox
	stepTime
	stepChild
	stepInside
	stepEnd
}

// stepTime is the wait for a step's deadline, empty for none.
type stepTime struct {
	timeout  string
	deadline time.Time
}

// stepChild is the child that does a step.
type stepChild struct {
	// child is its name, run its id; atWork says that it counts as one at work.
	child, run string
	atWork     bool
	// exit is why it ended, and extract what evaluators see of it.
	exit    event.Reason
	extract eval.Extract
}

// stepInside is what a step consists of that is a graph or a loop.
type stepInside struct {
	sub  *scope
	loop *loop
	// stop is how the step ends once what is inside has ended.
	stop *event.StepFinished
}

// stepEnd is what came of a step.
type stepEnd struct {
	status  event.StepStatus
	content string
	// whole says that the content is given to others uncut.
	whole  bool
	result json.RawMessage
	// results and items are those of a loop over items, nil for other steps.
	results json.RawMessage
	items   *itemsEnd
	error   *event.Failure
	taint   event.Taint
	// unfit says that it was skipped because of a failure.
	unfit bool
	end   loopEnd
}

func (n *node) step() *plan.Step { return n.vertex.step }

// name is the node's name in the run, which no other attempt has.
func (n *node) name() string {
	name := n.step().ID
	if n.in.pass != nil && n.in.pass.of.plan.Single {
		name = n.in.key
	} else if n.in.key != "" {
		name = n.in.key + "." + name
	}
	if n.attempt > 1 {
		name = fmt.Sprint(name, "~", n.attempt)
	}
	return name
}

// open begins a scope.
func (m *Machine) open(g *graph, in *node, id, key string, p *pass) *scope {
	s := &scope{graph: g, in: in, pass: p, id: id, key: key, open: len(g.steps), limit: g.plan.Concurrency}
	s.ready.of = g.plan.Scheduler
	s.steps = make([]*node, len(g.steps))
	nodes := make([]node, len(g.steps))
	for i := range g.steps {
		n := &nodes[i]
		*n = node{in: s, vertex: &g.steps[i], place: i, left: len(g.steps[i].deps)}
		switch n.id = n.step().ID; {
		case p != nil && p.of.plan.Single:
			n.id = id
		case id != "":
			n.id = id + "." + n.id
		}
		s.steps[i], m.steps[n.id] = n, n
	}
	return s
}

// settleEmpty lets the steps begin that wait for none.
func (m *Machine) settleEmpty(s *scope) {
	for _, n := range s.steps {
		if n.left == 0 {
			m.free(n)
		}
	}
}

// free is for a step whose dependencies have all ended.
func (m *Machine) free(n *node) {
	if n.in.stopped {
		m.cancel(n)
		return
	}
	for _, d := range n.vertex.deps {
		dep := n.in.steps[d]
		failed := dep.status == event.StepStatusFailed || dep.status == event.StepStatusCancelled
		switch {
		case failed && n.in.graph.plan.OnFailure != plan.SkipDependents:
			m.finish(n, event.StepFinished{Status: event.StepStatusFailed, Error: &event.Failure{
				Class: classDependency, Message: "the step " + dep.step().ID + ", on which it depends, did not complete"}})
			return
		case failed || dep.unfit:
			m.skip(n, "the step "+dep.step().ID+", on which it depends, did not complete", true)
			return
		}
	}
	if expression := n.step().Condition; expression != "" {
		m.evaluate(n, n.name()+"/condition", expression, n.variables, func(d event.ConditionEvaluated) { m.conditional(n, d) })
		return
	}
	m.queue(n)
}

// missingKey is the type of the error of an expression that names a key which a value
// lacks.
const missingKey = "missing_key"

// The classes of failures.
const (
	classDependency = "dependency_failed"
	classTimeout    = "timeout"
	classNoResult   = "no_result"
)

func (m *Machine) evaluate(n *node, id, expression string, variables func() json.RawMessage, then func(event.ConditionEvaluated)) {
	n.errand = "evaluate " + id
	m.agenda.add(n.errand, func() []machine.Action {
		return []machine.Action{machine.Evaluate{ID: id, Step: n.id, Expression: expression, Variables: variables()}}
	}, func(d event.Data) {
		n.errand = ""
		then(d.(event.ConditionEvaluated))
	})
}

func (m *Machine) conditional(n *node, d event.ConditionEvaluated) {
	switch holds, err := truth(d); {
	case d.ErrorType == missingKey:
		m.skip(n, "its condition names what is not there: "+d.Error, false)
	case err != "":
		m.finish(n, event.StepFinished{Status: event.StepStatusFailed, Error: conditionError(d.Expression, err)})
	case holds:
		m.queue(n)
	default:
		m.skip(n, "its condition is false", false)
	}
}

// truth is what a condition gave; err is why it gave nothing that is true or false.
func truth(d event.ConditionEvaluated) (holds bool, err string) {
	if d.Error != "" {
		return false, d.Error
	}
	if json.Unmarshal(d.Value, &holds) != nil {
		return false, "it gave " + string(d.Value) + ", which is neither true nor false"
	}
	return holds, ""
}

func conditionError(expression, err string) *event.Failure {
	return &event.Failure{Class: string(event.ReasonConditionError), Message: expression + ": " + err}
}

// finish wants a step's end journalled.
func (m *Machine) finish(n *node, d event.StepFinished) {
	d.Step, d.Attempt, n.phase = n.id, n.attempt, ending
	n.errand = "settle " + n.id
	e := m.record(n.errand, d, func(e event.Data) { m.finished(n, e.(event.StepFinished)) })
	failed := d.Status == event.StepStatusFailed || d.Status == event.StepStatusCancelled
	e.stops = failed && n.in.graph.plan.OnFailure == plan.Abort && !n.in.stopped
}

// skip wants it journalled that a step is left out; unfit says that a failure is why.
func (m *Machine) skip(n *node, reason string, unfit bool) {
	n.phase = ending
	n.errand = "settle " + n.id
	m.record(n.errand, event.StepSkipped{Step: n.id, Reason: reason}, func(event.Data) {
		n.status, n.unfit = event.StepStatusSkipped, unfit
		m.settled(n)
	})
}

// cancel ends a step that was not begun.
func (m *Machine) cancel(n *node) {
	m.finish(n, event.StepFinished{Status: event.StepStatusCancelled})
}

// finished takes in how an attempt at a step ended, and begins the next where there
// is one.
func (m *Machine) finished(n *node, d event.StepFinished) {
	if n.atWork {
		// Only now: what waits for the step is in its place before anything else is.
		n.atWork = false
		m.busy(n.in, n.agent(), -1)
	}
	again := d.Status == event.StepStatusFailed && n.attempt > 0 && n.attempt <= n.step().Retries && n.stop == nil && !n.in.stopped
	if again && m.Cancel == nil && m.Terminated == nil {
		m.dropCarried(n)
		n.sub, n.loop = nil, nil
		n.count(-1)
		m.queue(n)
		return
	}
	n.status, n.content, n.result, n.error = d.Status, d.Content, d.Result, d.Error
	if n.loop != nil && n.loop.plan.Items != nil {
		n.items = &itemsEnd{n.loop.items, n.loop.passes}
		n.results = n.items.results()
	}
	m.settled(n)
}

// count adds an attempt to those under way of the step's scope, or takes it from them.
func (n *node) count(by int) {
	if begins := by > 0; n.counts != begins {
		n.counts = begins
		n.in.under += by
	}
}

// settled is for a step that has ended.
func (m *Machine) settled(n *node) {
	s := n.in
	n.count(-1)
	m.dropCarried(n)
	m.handOn(n)
	if s.in == nil {
		m.counts.add(n.status)
	}
	if n.sub != nil {
		n.taint = n.taint.With(n.sub.taint())
	} else if n.loop != nil {
		n.taint = n.taint.With(n.loop.taint)
	}
	n.phase, n.errand, n.sub, n.loop = settled, "", nil, nil
	delete(m.steps, n.id)
	delete(m.timed, n.timeout)
	s.open--
	if n.status == event.StepStatusFailed || n.status == event.StepStatusCancelled {
		if s.failed == nil {
			s.failed = n
		}
		if s.graph.plan.OnFailure == plan.Abort {
			m.stopScope(s)
		}
	}
	for _, d := range n.vertex.dependents {
		dep := s.steps[d]
		if dep.left--; dep.left == 0 && dep.phase == waiting {
			m.free(dep)
		}
	}
	if s.open == 0 {
		m.scopeDone(s)
		return
	}
	m.wake(s)
}

// scopeDone is for a scope whose steps have all ended.
func (m *Machine) scopeDone(s *scope) {
	switch {
	case s.in == nil:
		m.done = true
	case s.pass != nil:
		m.passDone(s)
	default:
		d := s.end()
		if s.in.stop != nil {
			d.Status, d.Error = s.in.stop.Status, s.in.stop.Error
		}
		m.finish(s.in, d)
	}
}

// end is what a scope comes to: the content and the result of its last steps, and
// how it ended.
func (s *scope) end() event.StepFinished {
	d := event.StepFinished{Status: event.StepStatusCompleted}
	d.Content, d.Result = s.last()
	switch f := s.failed; {
	case f == nil:
	case f.status == event.StepStatusCancelled && s.stopped:
		d.Status = event.StepStatusCancelled
	default:
		d.Status, d.Error = event.StepStatusFailed, within(f)
	}
	return d
}

// within is a step's failure as that of the step around it.
func within(n *node) *event.Failure {
	f := event.Failure{Class: string(event.ReasonStepFailed), Message: "it was cancelled"}
	if n.error != nil {
		f = *n.error
	}
	f.Message = n.id + ": " + f.Message
	return &f
}

// last is what the last steps of a scope say, behind which none was done. The result is that of the one last
// step.
func (s *scope) last() (content string, result json.RawMessage) {
	lasts := s.lasts()
	if len(lasts) == 1 {
		return lasts[0].content, lasts[0].result
	}
	for i, n := range lasts {
		if i > 0 {
			content += "\n\n"
		}
		content += "## " + n.step().ID + "\n\n" + n.content
	}
	return content, nil
}

// lasts are the steps of a scope that were not skipped, and behind which none was done.
func (s *scope) lasts() (lasts []*node) {
	for i, v := range s.graph.steps {
		goesOn := slices.ContainsFunc(v.dependents, func(d int) bool { return s.steps[d].status != event.StepStatusSkipped })
		if n := s.steps[i]; !goesOn && n.status != event.StepStatusSkipped {
			lasts = append(lasts, n)
		}
	}
	return lasts
}

func (s *scope) taint() (t event.Taint) {
	for _, n := range s.steps {
		t = t.With(n.taint)
	}
	return t
}
