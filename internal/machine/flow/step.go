package flow

import (
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/rules/eval"
	"github.com/pawlrun/pawl/llm"
)

// Kinds of children other than those that a plan can name.
const (
	KindAgent = "Agent"
	KindFunc  = "Func"
)

// startChild begins an attempt at a step that runs as one child.
func (m *Machine) startChild(n *node) {
	n.child = n.name()
	n.atWork = true
	m.busy(n.in, n.agent(), 1)
	if n.step().Command != nil {
		m.startCommand(n)
		return
	}
	m.beginChild(n)
}

// beginChild requests the child of the attempt, or its replacement.
func (m *Machine) beginChild(n *node) {
	m.requests.add("child "+n.child, func() []machine.Action { return []machine.Action{m.child(n)} }, func(d event.Data) {
		child := d.(event.ChildStarted).Child
		n.run = child
		if n.reachable() {
			m.beginMail(&n.mail, child, n.id)
		}
		m.under[child] = underWay{
			again: func() machine.StartChild { return m.child(n) },
			anew: func() {
				m.requests.drop("start " + n.id)
				m.readAgain(&n.mail)
				m.beginChild(n)
			},
			done: func(d event.ChildFinished) { m.childDone(n, &d) },
		}
		if n.child == n.id { // child.started records the start of the step
			m.coordinator.note(n.id)
			m.began(n)
			return
		}
		started := event.StepStarted{Step: n.id, Attempt: n.attempt, Child: child, Index: n.in.item()}
		m.record("start "+n.id, started, func(event.Data) { m.began(n) })
	})
}

// item returns the index of a scope's item, nil for none.
func (s *scope) item() *int {
	if s.pass == nil || s.pass.of.plan.Items == nil {
		return nil
	}
	return &s.pass.index
}

func (m *Machine) child(n *node) machine.StartChild {
	a := machine.StartChild{ID: n.child, Kind: KindAgent, Step: n.id, Taint: m.takesIn(n), Worktree: n.step().Agent != nil && n.isolated()}
	for _, said := range n.mail.started() {
		a.Taint = a.Taint.With(said.Taint)
	}
	switch s := n.step(); {
	case s.Agent != nil && n.in.logged():
		a.Name, a.Input = s.Agent.Name, task(m.message(n), append(n.media(), m.media...))
	case s.Agent != nil:
		a.Name = s.Agent.Name
		a.Input = task(Prompt(m.material(n)), append(n.media(), m.media...))
	case s.Func != nil:
		a.Kind, a.Name, a.Input = KindFunc, s.Func.Name, m.argument(n)
	case s.Run != nil:
		a.Kind, a.Name, a.Input = s.Run.Kind, s.Run.Name, s.Run.Input
		if len(a.Input) == 0 {
			a.Input = task(Prompt(m.material(n)), n.media())
		}
	}
	return a
}

// task returns an agent's task with its images and files.
func task(text string, media []llm.Media) json.RawMessage {
	raw, _ := json.Marshal(struct {
		Task  string      `json:"task"`
		Media []llm.Media `json:"media,omitempty"`
	}{text, media})
	return raw
}

func (n *node) media() (all []llm.Media) {
	if a := n.step().Agent; a != nil {
		for _, f := range a.Files {
			if f.Media != nil {
				all = append(all, *f.Media)
			}
		}
	}
	return all
}

// began folds the journalled start of an attempt. The first attempt starts the step's
// time.
func (m *Machine) began(n *node) {
	most := lasts(n.step())
	if most == 0 || n.timeout != "" {
		return
	}
	n.timeout, n.deadline = "timeout "+n.name(), m.Now.Add(most)
	m.timed[n.timeout] = n
	m.deadlines.push(n.deadline.UnixNano(), 0, n)
}

// timeUp ends a step whose time is up.
func (m *Machine) timeUp(n *node) {
	delete(m.timed, n.timeout)
	m.stop(n, event.StepFinished{Status: event.StepStatusFailed, Error: &event.Failure{
		Class: classTimeout, Message: fmt.Sprintf("it was not done after %s", lasts(n.step()))}})
}

func (m *Machine) childDone(n *node, d *event.ChildFinished) {
	m.Forget(n.child)
	m.endMail(&n.mail)
	n.exit, n.extract = d.Outcome.Reason, eval.OfOutcome(d.Outcome)
	s := n.step()
	if n.taint = n.taint.With(d.Taint); s.Func != nil {
		n.taint = n.taint.With(m.takesIn(n)) // no journal records that a function used its input
	}
	end := ended(&d.Outcome, s.Agent != nil && s.Agent.Result)
	if o := d.Outcome; end.Error != nil && o.Kind == tree.KindAbove {
		end.Error.Limit, end.Error.LimitRun = o.Limit, o.LimitRun
		if o.LimitRun == m.ID {
			end.Error.LimitRun = ""
		}
	}
	if n.stop != nil && end.Status != event.StepStatusCompleted {
		end.Status, end.Error = n.stop.Status, n.stop.Error
	}
	end.Worktree = d.Worktree
	m.finish(n, end)
}

// isolated reports whether a step works in a git worktree of its own.
func (n *node) isolated() bool {
	for at := n; at != nil; at = at.in.in {
		if at.in.graph.plan.Worktrees {
			return true
		}
	}
	return false
}

// NoResult is the failure of a step whose agent must submit a result but did not.
const NoResult = "resultSchema defined but submit_result never called"

// ended converts a child's outcome to the end of its step.
func ended(o *event.Outcome, result bool) event.StepFinished {
	d := event.StepFinished{Status: event.StepStatusFailed, Content: o.FinalOutput, Result: o.Result}
	switch {
	case result && len(o.Result) == 0 && (o.OK || o.Error == nil && o.Status != event.StatusCancelled):
		d.Error = &event.Failure{Class: classNoResult, Message: NoResult}
	case o.OK:
		d.Status = event.StepStatusCompleted
	case o.Status == event.StatusCancelled:
		d.Status = event.StepStatusCancelled
	case o.Error != nil:
		d.Error = &event.Failure{Class: string(o.Reason), Message: o.Error.Message}
	default:
		d.Error = &event.Failure{Class: string(o.Reason), Message: "it ended as " + string(o.Reason)}
	}
	return d
}

// stopScope cancels all steps of a scope.
func (m *Machine) stopScope(s *scope) {
	s.stopped = true
	for _, n := range s.steps {
		m.stop(n, event.StepFinished{Status: event.StepStatusCancelled})
	}
}

// stop ends a step and everything in it.
func (m *Machine) stop(n *node, how event.StepFinished) {
	switch {
	case n.stop != nil || n.phase == ending || n.phase == settled:
		return
	case n.phase != working:
		m.requests.drop(n.request)
		n.stop = &how // prevents another attempt
		m.finish(n, how)
		return
	}
	n.stop = &how
	switch {
	case n.leaf():
		if m.dropUnbegun(n) {
			m.finish(n, how)
			return
		}
		m.Stop(n.child, notWanted)
	case n.sub != nil:
		m.stopScope(n.sub)
	case n.loop != nil:
		m.stopLoop(n.loop)
	default:
		m.requests.drop("start " + n.id)
		m.finish(n, how)
	}
}

// dropUnbegun removes the request of a step that runs as one child, and reports whether
// the child had not started.
func (m *Machine) dropUnbegun(n *node) (had bool) {
	if n.step().Command == nil {
		_, had = m.requests.drop("child " + n.child)
	} else if _, had = m.requests.drop("start " + n.id); !had {
		had = m.dropCommand(n.child)
	}
	return had
}

// startBelow begins an attempt at a step that is a plan or a loop.
func (m *Machine) startBelow(n *node) {
	m.record("start "+n.id, event.StepStarted{Step: n.id, Attempt: n.attempt, Index: n.in.item()}, func(event.Data) {
		m.began(n)
		if n.step().Loop != nil {
			m.startLoop(n)
			return
		}
		n.sub = m.open(n.vertex.body, n, n.id, n.name(), nil)
		m.settleEmpty(n.sub)
		m.wake(n.sub)
	})
}
