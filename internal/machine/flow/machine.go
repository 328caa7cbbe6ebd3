// Package flow implements the machine of a workflow: a graph of steps and of loops
// around graphs. A step runs as a child or as a command. One scheduler runs everything,
// because the body of a loop and a nested plan are graphs like the workflow itself.
package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/llm"
)

// Machine is the state of one workflow. It is built by applying the run's events in
// order, and is not safe for concurrent use.
type Machine struct {
	tree.Run
	cfg Config
	assignment
	root *scope
	// steps contains the steps of the active graphs, by id.
	steps map[string]*node
	// under contains the active children, by run id.
	under map[string]underWay
	// running contains the ids of the commands that have started and not ended.
	running map[string]bool
	// goalLoop is the loop that pursues the run's goal, nil for none.
	goalLoop *loop
	// reviews contains the loops that wait for a person, by question id.
	reviews  map[string]*loop
	requests requests
	post
	timers
	workload
	progress
}

// assignment is the run's input.
type assignment struct {
	fence fence.Fence
	given event.Taint
	task  string
	// media are the images and files of a loop's task.
	media []llm.Media
}

// timers contains the deadlines of the plan and its steps.
type timers struct {
	// deadlines orders the open steps by deadline; timed contains the steps with a
	// timer, by the ids of the waits.
	deadlines queue[*node]
	timed     map[string]*node
	// timeout is the id of the wait for the plan's deadline. parkedAt is the time of
	// the last park, zero while the run is driven.
	timeout            string
	deadline, parkedAt time.Time
}

// workload counts the work that has begun: turns is the total, and atWork the number of
// active children by agent.
type workload struct {
	turns  int64
	atWork map[string]int
}

// progress describes how far the run is.
type progress struct {
	// counts contains the ends of the top-level steps. done reports whether all of them
	// have ended, and late whether the plan's time ran out before.
	counts     counts
	done, late bool
	// paused reports that nothing may begin until the run has parked and resumed.
	paused bool
	// over reports that no work and no undelivered messages are left.
	over bool
}

// underWay is a child that has started: its action, and the function that folds its
// end.
type underWay struct {
	again func() machine.StartChild
	// anew requests a replacement of the child.
	anew func()
	done func(event.ChildFinished)
}

var (
	_ machine.Funder    = (*Machine)(nil)
	_ machine.Spending  = (*Machine)(nil)
	_ machine.Messenger = (*Machine)(nil)
	_ machine.Repeater  = (*Machine)(nil)
)

// New returns a machine whose first event must be run.started.
func New() *Machine { return &Machine{} }

// Apply folds one event.
func (m *Machine) Apply(e *event.Event) error {
	if _, forks := e.Data.(event.RunForked); forks && m.parkedAt.IsZero() {
		m.parkedAt = m.Now // the time until the fork resumes does not count
	}
	if err := m.Run.Apply(e); err != nil {
		return err
	}
	err := m.apply(e)
	if err == nil {
		m.fill()
		m.attend()
	}
	return err
}

func (m *Machine) apply(e *event.Event) error {
	if key, is := settledBy(e.Data); is {
		return m.requests.settle(key, e.Data)
	}
	switch d := e.Data.(type) {
	case event.RunStarted:
		return m.begin(&d)
	case event.PauseRequested:
		m.paused = true
	case event.RunParked:
		m.parkedAt = e.Time
	case event.RunResumed:
		m.paused = false
		m.shift(e.Time)
	case event.RunForked:
		m.shift(e.Time)
		m.beginAnew()
	case event.RunTerminatedBy:
		m.requests.drop("end")
		m.closeMail(event.DropWorkflowCancelled)
		if !m.done {
			m.stopScope(m.root)
		}
	case event.WaitFinished:
		return m.waited(d)
	case event.ReviewResolved:
		return m.reviewed(&d)
	case event.ToolApprovalResolved:
		m.requests.drop("withdraw " + d.CallID)
	case event.BudgetWarning:
		m.requests.drop("warning " + d.Setting)
	case event.GoalUnanswered:
		m.requests.drop("goal " + d.ID)
	case event.MessageSent, event.MessageDelivered, event.MessageDropped, event.InputReceived:
		m.applyMail(d)
	default:
		return m.applyWork(d)
	}
	return nil
}

// settledBy returns the key of the request that an event settles. is is false for
// events that do more than that.
func settledBy(data event.Data) (key string, is bool) {
	switch d := data.(type) {
	case event.ChildStarted:
		return "child " + d.ID, true
	case event.StepFinished:
		return "settle " + d.Step, true
	case event.StepSkipped:
		return "settle " + d.Step, true
	case event.ConditionEvaluated:
		return "evaluate " + d.ID, true
	case event.Iteration:
		return fmt.Sprint("iteration ", d.Index, " ", d.Step), true
	case event.Checkpoint:
		return "checkpoint " + d.Label, true
	case event.JudgeVerdict:
		return fmt.Sprint("verdict ", d.Number, " ", d.Step), true
	case event.Progress:
		return fmt.Sprint("progress ", d.Number, " ", d.Step), true
	}
	return "", false
}

// applyWork folds the results of children, commands and steps.
func (m *Machine) applyWork(data event.Data) error {
	switch d := data.(type) {
	case event.ChildFinished:
		then := m.under[d.Child].done
		delete(m.under, d.Child)
		then(d)
	case event.CommandStarted:
		m.running[d.ID] = true
	case event.CommandFinished:
		if m.Ran(d.ID) == nil {
			return nil
		}
		begun := m.running[d.ID]
		delete(m.running, d.ID)
		m.Forget(d.ID)
		if _, due := m.requests.byKey["command "+d.ID]; due || begun {
			return m.requests.settle("command "+d.ID, d)
		}
	case event.StepStarted:
		if _, due := m.requests.byKey["start "+d.Step]; !due && d.Child != "" {
			return nil // an older journal may contain this event next to child.started
		}
		m.coordinator.note(d.Step)
		return m.requests.settle("start "+d.Step, d)
	}
	return nil
}

// applyMail folds an event about messages.
func (m *Machine) applyMail(data event.Data) {
	switch d := data.(type) {
	case event.MessageSent:
		m.sent(&d)
	case event.MessageDelivered:
		m.requests.drop("message " + d.ID)
		m.delivered(d.ID)
	case event.MessageDropped:
		m.requests.drop("message " + d.ID)
		m.dropped(&d)
	case event.InputReceived:
		m.receiveMessage(&d)
	}
}

// waited folds the end of a wait.
func (m *Machine) waited(d event.WaitFinished) error {
	switch n := m.timed[d.ID]; {
	case d.ID == m.timeout:
		m.closeMail(event.DropWorkflowCancelled)
		if m.late = !m.done; m.late {
			m.stopScope(m.root)
		}
	case n != nil:
		m.timeUp(n)
	default:
		return m.requests.settle("wait "+d.ID, d)
	}
	return nil
}

// beginAnew replaces the children that were open where a fork begins, because they
// belong to the forked run.
func (m *Machine) beginAnew() {
	open := slices.SortedFunc(maps.Values(m.under), func(a, b underWay) int { return cmp.Compare(a.again().ID, b.again().ID) })
	m.under = map[string]underWay{}
	for _, u := range open {
		u.anew()
	}
}

func (m *Machine) begin(d *event.RunStarted) error {
	if err := json.Unmarshal(d.Config, &m.cfg); err != nil {
		return fmt.Errorf("flow: config: %w", err)
	}
	m.Limits, m.OnBudget, m.given = m.cfg.Limits, m.cfg.OnBudget, d.Taint
	if d.Fence != nil {
		m.fence = fence.New(d.Fence.Nonce)
	}
	if d.Input != nil {
		m.task = d.Input.Text()
		for _, p := range d.Input.Parts {
			if f, is := p.(llm.Media); is && m.cfg.Plan.Refine {
				m.media = append(m.media, f)
			}
		}
	}
	m.running, m.reviews = map[string]bool{}, map[string]*loop{}
	m.steps, m.under = map[string]*node{}, map[string]underWay{}
	m.mail, m.unread = map[string]reader{}, map[string]*mailbox{}
	if m.coordinator.agent = m.cfg.Plan.Coordinator; m.coordinator.agent == "" {
		m.coordinator.closed = event.DropUnknownStep
	}
	m.timed, m.atWork = map[string]*node{}, map[string]int{}
	m.root = m.open(newGraph(&m.cfg.Plan), nil, "", "", nil)
	m.root.limit = least(m.root.limit, m.cfg.Concurrency)
	if t := m.cfg.Plan.Timeout; t > 0 {
		m.timeout, m.deadline = planTimeout, m.Now.Add(t)
	}
	m.settleEmpty(m.root)
	return nil
}

// least returns the smaller of two limits; 0 means no limit.
func least(a, b int) int {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Next returns the actions that are due.
func (m *Machine) Next() []machine.Action {
	if m.Terminated != nil && m.Open() == 0 && m.State().Phase == machine.Running {
		if rest := m.requests.actions(nil); len(rest) > 0 {
			return rest
		}
		return []machine.Action{machine.Record{Data: event.RunCompleted{Outcome: m.outcome()}}}
	}
	due, more := m.Due()
	if !more {
		return due
	}
	switch due = m.requests.actions(due); {
	case len(due) == 0 && m.AllParked():
		return m.OrPark(nil)
	case m.paused && m.Open() == 0 && !slices.ContainsFunc(due, pressing):
		return []machine.Action{machine.Record{Data: event.RunParked{Reason: event.ParkPaused}}}
	}
	return m.deliveries(append(m.OrPark(due), m.nextDeadline()...))
}

// pressing reports whether an action delays a pause. A wait does not.
func pressing(a machine.Action) bool {
	_, wait := a.(machine.Wait)
	return !wait
}

// planTimeout is the id of the wait for the plan's deadline.
const planTimeout = "timeout"

// shift extends the deadlines of the plan and its steps by the time the run was parked.
// It does not extend timers that have started; new timers replace them.
func (t *timers) shift(now time.Time) {
	if t.parkedAt.IsZero() {
		return
	}
	by := now.Sub(t.parkedAt)
	t.parkedAt = time.Time{}
	if !t.deadline.IsZero() {
		t.timeout, t.deadline = t.timeout+"+", t.deadline.Add(by)
	}
	before := t.timed
	t.timed, t.deadlines = map[string]*node{}, queue[*node]{}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		n := before[id]
		n.timeout, n.deadline = id+"+", n.deadline.Add(by)
		t.timed[n.timeout] = n
		t.deadlines.push(n.deadline.UnixNano(), 0, n)
	}
}

// nextDeadline returns the waits for the plan's deadline and for the earliest deadline
// of a step.
func (m *Machine) nextDeadline() (due []machine.Action) {
	if !m.deadline.IsZero() && !m.over {
		due = m.Until(m.timeout, m.deadline)
	}
	for !m.deadlines.empty() {
		switch n := m.deadlines.first(); {
		case n.phase == ending: // wait for its end first
			return due
		case n.phase != settled && n.stop == nil:
			return append(due, m.Until(n.timeout, n.deadline)...)
		}
		m.deadlines.pop()
	}
	return due
}
