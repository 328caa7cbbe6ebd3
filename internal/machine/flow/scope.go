package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/eval"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// scope is an active graph: the run's plan, a plan inside a step, or one pass of a
// loop.
type scope struct {
	graph *graph
	// in is the enclosing step, nil for the run's plan. pass is the loop's pass, nil
	// for none.
	in   *node
	pass *pass
	// id is the prefix of its steps' ids. key is the prefix of their names, which
	// differ between attempts.
	id, key string
	steps   []*node
	// open is the number of steps that have not ended, under the number of active
	// steps, busy the number of active children in the scope, and limit the maximum of
	// busy.
	open, under, busy, limit int

	ready     ready
	startable queue[*node]
	// failed is the first step that failed. stopped reports that all steps must end.
	failed  *node
	stopped bool
}

// phase is the state of a step.
type phase uint8

const (
	// waiting for dependencies or for the step's condition.
	waiting phase = iota
	// queued until concurrency allows the step to begin.
	queued
	working
	// ending: the end is decided but not journalled.
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
	// attempt is the number of the attempt, starting at 1.
	attempt   int
	startable bool
	// counts reports whether the step counts as active in its scope.
	counts bool
	// request is the key of the step's pending request.
	request string
	// mail contains the messages to the step.
	mail mailbox
	stepTime
	stepChild
	stepInside
	stepEnd
}

// stepTime contains a step's deadline and the id of the wait for it, empty for none.
type stepTime struct {
	timeout  string
	deadline time.Time
}

// stepChild is the child that carries out a step.
type stepChild struct {
	// child is its name, run its run id; atWork reports whether it counts as active.
	child, run string
	atWork     bool
	// exit is the reason of its end, and extract its outcome in the form that
	// evaluators use.
	exit    event.Reason
	extract eval.Extract
}

// stepInside is the graph or loop of a step.
type stepInside struct {
	sub  *scope
	loop *loop
	// stop is the end of the step, to be recorded when everything in the step has
	// ended.
	stop *event.StepFinished
}

// stepEnd is the result of a step.
type stepEnd struct {
	status  event.StepStatus
	content string
	// whole reports that other tasks contain the content uncut.
	whole  bool
	result json.RawMessage
	// results and items are the results of a loop over items, nil for other steps.
	results json.RawMessage
	items   *itemsEnd
	error   *event.Failure
	taint   event.Taint
	// unfit reports that the step was skipped because of a failure.
	unfit bool
	end   loopEnd
}

func (n *node) step() *plan.Step { return n.vertex.step }

// name returns the step's name in the run, which is unique for each attempt.
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

// settleEmpty frees the steps without dependencies.
func (m *Machine) settleEmpty(s *scope) {
	for _, n := range s.steps {
		if n.left == 0 {
			m.free(n)
		}
	}
}

// free handles a step whose dependencies have ended.
func (m *Machine) free(n *node) {
	if n.in.stopped {
		m.finish(n, event.StepFinished{Status: event.StepStatusCancelled})
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

// finish requests that a step's end be journalled.
func (m *Machine) finish(n *node, d event.StepFinished) {
	d.Step, d.Attempt, n.phase = n.id, n.attempt, ending
	n.request = "settle " + n.id
	e := m.record(n.request, d, func(e event.Data) { m.finished(n, e.(event.StepFinished)) })
	failed := d.Status == event.StepStatusFailed || d.Status == event.StepStatusCancelled
	e.stops = failed && n.in.graph.plan.OnFailure == plan.Abort && !n.in.stopped
}

// skip requests that a skip be journalled. unfit reports whether a failure is the
// reason.
func (m *Machine) skip(n *node, reason string, unfit bool) {
	n.phase = ending
	n.request = "settle " + n.id
	m.record(n.request, event.StepSkipped{Step: n.id, Reason: reason}, func(event.Data) {
		n.status, n.unfit = event.StepStatusSkipped, unfit
		m.settled(n)
	})
}

// finished folds the end of an attempt at a step and begins the next attempt, if any.
func (m *Machine) finished(n *node, d event.StepFinished) {
	if n.atWork {
		// Release the slot only now, so that the steps that depend on this one are
		// queued before anything else begins.
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

// count adds by to the active steps of the scope.
func (n *node) count(by int) {
	if begins := by > 0; n.counts != begins {
		n.counts = begins
		n.in.under += by
	}
}

// settled handles the end of a step.
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
	n.phase, n.request, n.sub, n.loop = settled, "", nil, nil
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

// scopeDone handles a scope in which every step has ended.
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

// end returns the result of a scope: its status, and the content and result of its last
// steps.
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

// within converts a step's failure to a failure of the enclosing step.
func within(n *node) *event.Failure {
	f := event.Failure{Class: string(event.ReasonStepFailed), Message: "it was cancelled"}
	if n.error != nil {
		f = *n.error
	}
	f.Message = n.id + ": " + f.Message
	return &f
}

// last returns the output of the last steps of a scope. The result is set only if there
// is exactly one last step.
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

// lasts returns the steps of a scope that ran and that no step followed.
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
