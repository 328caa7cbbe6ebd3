package flow

import (
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/refine"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// SafetyCap is the maximum number of iterations of a loop without a cap.
const SafetyCap = 100

// loop is a running loop. It is the body of one attempt at a step.
type loop struct {
	of   *node
	plan *plan.Loop
	// items has one element per pass; next is the index of the next pass.
	items []json.RawMessage
	next  int
	// active contains the current passes, and startable those with work that may begin.
	active    map[int]*scope
	startable queue[*scope]
	// passes contains the results of passes, by index.
	passes []passEnd
	// failed is the failure that prevents new passes, nil for none.
	failed *event.Failure
	taint  event.Taint
	inspection
	tally
	work
	record
	// goal is the state of a loop that pursues a goal, nil for other loops.
	goal *goalState
	// mail contains the messages for the steps of the next pass, by step name.
	mail map[string]*mailbox
}

// tally contains the counters of a loop.
type tally struct {
	// missed is the number of consecutive missing verdicts, and errors the number of
	// consecutive failed passes.
	missed, errors int
	// more is the number of passes that a person approved beyond the cap.
	more int
}

// record is the log of a loop.
type record struct {
	log refine.Log
	// unlogged is an ended pass that the log does not contain yet.
	unlogged *passEnd
}

// inspection is the state of the checks after a pass.
type inspection struct {
	finished *scope
	// asked is the index of the current check.
	asked int
	// running is the check whose command is to run, and consulting the question for an
	// agent.
	running    *plan.Stop
	consulting *consultation
	// judge is the name of the consulted child, judgeOf the name of its agent, command
	// the id of the running command, and review the id of the question to a person.
	judge, judgeOf, command, review string
}

// pass is one pass of a loop.
type pass struct {
	of        *loop
	index     int
	item      json.RawMessage
	startable bool
}

// passEnd is the result of a pass.
type passEnd struct {
	status  event.StepStatus
	content string
	result  json.RawMessage
	error   *event.Failure
	judged  *judged
	// checks contains the outputs of the commands that checked the pass.
	checks []Section
	// said contains the output of each member of a team. Only the last pass keeps it.
	said []Section
	// plain reports whether the result adds nothing to the content.
	plain bool
}

// judged is a judge's verdict on a pass.
type judged struct {
	content, reason string
	result          json.RawMessage
}

func (m *Machine) startLoop(n *node) {
	l := &loop{of: n, plan: n.step().Loop, active: map[int]*scope{}, work: work{tree: m.cfg.Tree}}
	n.loop = l
	switch items := l.plan.Items; {
	case l.plan.Goal != nil:
		m.startGoal(l)
	case items == nil:
		m.nextPass(l)
	case items.Expression != "":
		m.evaluate(n, n.name()+"/items", items.Expression, n.variables, func(d event.ConditionEvaluated) {
			var list []json.RawMessage
			if d.Error == "" && (json.Unmarshal(d.Value, &list) != nil || list == nil) {
				d.Error = "it gave no array"
			}
			if d.Error != "" {
				m.endLoop(l, conditionError(d.Expression, d.Error))
				return
			}
			m.setItems(l, list)
		})
	default:
		m.setItems(l, items.Static)
	}
}

func (m *Machine) setItems(l *loop, items []json.RawMessage) {
	if most := l.plan.Items.Max; most > 0 && len(items) > most {
		m.endLoop(l, &event.Failure{Class: "max_items", Message: fmt.Sprintf("there are %d items, and at most %d may be", len(items), most)})
		return
	}
	l.items, l.passes = items, make([]passEnd, len(items))
	m.markStartable(l.of)
	m.wake(l.of.in)
	m.endItems(l)
}

// takeFromLoop returns a function that begins the next work in a loop, nil for none.
// Current passes come before new items.
func (m *Machine) takeFromLoop(l *loop) (begin func()) {
	switch {
	case l.consulting != nil:
		return func() { m.beginConsulting(l) }
	case l.running != nil:
		return func() { m.runStop(l) }
	}
	for {
		for !l.startable.empty() {
			s := l.startable.first()
			if begin := m.takeFrom(s); begin != nil {
				return begin
			}
			l.startable.pop()
			s.pass.startable = false
		}
		if l.plan.Items == nil || l.next == len(l.items) || l.failed != nil {
			return nil
		}
		if most := l.plan.Items.Concurrency; most > 0 && len(l.active) >= most {
			return nil
		}
		m.nextPass(l)
	}
}

// nextPass begins a pass.
func (m *Machine) nextPass(l *loop) {
	n, p := l.of, &pass{of: l, index: l.next}
	format := "%s.%d"
	if l.plan.Items != nil {
		format, p.item = "%s[%d]", l.items[l.next]
	}
	l.next++
	s := m.open(n.vertex.body, n, fmt.Sprintf(format, n.id, p.index), fmt.Sprintf(format, n.name(), p.index), p)
	l.active[p.index] = s
	m.takeOver(l, s)
	m.settleEmpty(s)
	m.wake(s)
}

// passDone handles a pass in which every step has ended.
func (m *Machine) passDone(s *scope) {
	p, l := s.pass, s.pass.of
	n, end := l.of, s.end()
	l.taint = l.taint.With(s.taint())
	if n.stop != nil {
		delete(l.active, p.index)
		m.endStopped(l)
		return
	}
	d := event.Iteration{Step: n.id, Index: p.index, Number: p.index + 1, Item: p.item, Output: end.Content}
	if l.plan.Items == nil {
		d.MaxIterations = l.most()
	}
	if only := s.steps[0]; l.plan.Single && only.run != "" {
		d.Child = only.run
	}
	key, record := fmt.Sprint("iteration ", p.index, " ", n.id), m.record
	if m.cfg.Plan.Refine {
		d.Exit, record = s.steps[0].exit, m.observe
	}
	record(key, d, func(e event.Data) {
		delete(l.active, p.index)
		l.compare(e.(event.Iteration).Tree)
		l.answered(end.Content)
		pass := passEnd{status: end.Status, content: end.Content, result: end.Result, error: end.Error}
		if l.plan.Items != nil {
			pass.ofItem(s, m.cfg.Edition)
		}
		if m.cfg.Plan.Refine {
			pass.error = s.steps[0].error // the iteration has only this step
		}
		if l.plan.Carry.Log != nil {
			m.keepLog(l, s, pass)
			return
		}
		m.passed(l, s, pass)
	})
}

func (m *Machine) passed(l *loop, s *scope, end passEnd) {
	l.unlogged = nil
	failed := end.status != event.StepStatusCompleted && end.status != event.StepStatusSkipped
	if failed && end.error == nil {
		end.error = &event.Failure{Class: string(event.StepStatusCancelled), Message: "it was cancelled"}
	}
	if l.plan.Items != nil {
		l.passes[s.pass.index] = end
		if failed && l.plan.Items.OnError == plan.FailFast && l.failed == nil {
			l.failed = end.error
		}
		m.markStartable(l.of)
		m.wake(l.of.in)
		m.endItems(l)
		return
	}
	if n := len(l.passes); n > 0 {
		l.passes[n-1].said = nil
	}
	if m.cfg.Plan.Team {
		end.said = s.sections()
	}
	l.passes = append(l.passes, end)
	switch {
	case l.of.stop != nil:
		m.endStopped(l)
	case l.goal != nil:
		m.ofGoal(l, s, end.error)
	case failed:
		m.afterError(l, end.error)
	default:
		l.errors = 0
		m.consider(l, s, 0)
	}
}

// afterError handles a failed pass.
func (m *Machine) afterError(l *loop, failure *event.Failure) {
	l.errors++
	over := m.cfg.Plan.Refine && failure.Limit != "" // later iterations would reach the same limit
	switch most := l.plan.ErrorsMax; {
	case over || l.plan.OnError == plan.IterationFails:
		if f := *failure; m.cfg.Plan.Refine {
			f.Message, failure = fmt.Sprintf("iteration %d: %s", len(l.passes), f.Message), &f
			l.of.end.why = &event.RunTerminatedBy{Reason: event.ReasonIterationFailed, AtIteration: len(l.passes)}
		}
		m.endLoop(l, failure)
	case most > 0 && l.errors >= most:
		m.endLoop(l, &event.Failure{Class: string(event.ReasonRepeatedFailure), Message: fmt.Sprintf(
			"%d iterations failed in a row, the last with: %s", l.errors, failure.Message)})
	default:
		m.another(l)
	}
}

// endItems ends a loop over items when all its passes have ended and no other pass may
// begin.
func (m *Machine) endItems(l *loop) {
	switch {
	case len(l.active) > 0 || l.next < len(l.items) && l.failed == nil && l.of.stop == nil:
		return
	case l.of.stop != nil:
		m.endStopped(l)
		return
	}
	succeeded, skipped, failure := l.counted()
	if skipped > 0 && skipped == len(l.items) {
		m.finish(l.of, event.StepFinished{Status: event.StepStatusSkipped, Result: l.result()})
		return
	}
	if least := l.plan.Items.Least(len(l.items)); failure == nil && succeeded < least {
		failure = &event.Failure{Class: "min_success", Message: fmt.Sprintf("%d of %d items succeeded, and at least %d must", succeeded, len(l.items), least)}
	}
	m.endLoop(l, failure)
}

// counted returns the number of items that succeeded, the number of skipped ones among
// them, and the failure that ends the loop, nil for none.
func (l *loop) counted() (succeeded, skipped int, failure *event.Failure) {
	failure = l.failed
	for i, end := range l.passes {
		switch {
		case end.status == event.StepStatusCompleted:
			succeeded++
		case end.status == event.StepStatusSkipped:
			succeeded, skipped = succeeded+1, skipped+1
		case end.error != nil && failure == nil && l.plan.Items.OnError == plan.Collect:
			of := *end.error
			of.Message = fmt.Sprintf("item %d: %s", i, of.Message)
			failure = &of
		}
	}
	return succeeded, skipped, failure
}
