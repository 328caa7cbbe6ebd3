package agent

import (
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/tree"
	"github.com/pawlrun/pawl/stop"
)

// ErrUnsupported is returned for a journal that another version wrote in a way
// that this one does not understand.
var ErrUnsupported = machine.ErrUnsupported

// ErrMisfit is returned for an event that cannot follow on those before it,
// such as a second result of a call or anything after run.completed. A driver
// that meets it must not journal the event.
var ErrMisfit = tree.ErrMisfit

// Machine is the state of one agent run. It is built by applying the run's
// events in order, and is not safe for concurrent use.
type Machine struct {
	run run

	messages    messages
	model       modelCall
	calls       calls
	turn        turn
	compaction  compaction
	account     account
	permissions permissions
	hooks       runHooks
	progress    progress
}

// progress is what shows that a run gets on, or does not.
type progress struct {
	novelty       novelty
	repetition    stop.Repetition
	failureCounts failureCounts
	// stuck is what was decided about repetition in this cycle.
	stuck *event.Stuck
}

// permissions are the rules that calls are judged by, beside those of the
// configuration.
type permissions struct {
	// policy is the version of the policy that judges.
	policy string
	// added are what people allowed for the rest of the run.
	added []event.PermissionAdded
}

// Configured is the machine of an agent's run, whatever its version.
type Configured interface {
	machine.Conversing
	// Config is the configuration that the run has now.
	Config() Config
}

// New returns a machine that expects run.started.
func New() *Machine { return &Machine{} }

var _ machine.Funder = (*Machine)(nil)

// State says where the run stands.
func (m *Machine) State() machine.State {
	s := m.run.State(m.calls.asking())
	s.Cycle, s.Pending = m.run.cycle, m.calls.pending
	if !m.calls.askingBelow() { // a child is not bounded while it and the run wait for a person
		s.Deadline = m.run.deadline()
	}
	return s
}

// Config is the run's configuration, as its first event pinned it and as
// raised budgets changed it.
func (m *Machine) Config() Config { return m.run.cfg }

// Spent is what the run has used, and how long it has been going up to its last
// event.
func (m *Machine) Spent() budget.Spent { return m.run.Spent }

// Workload is the id under which providers know the conversation: that of the
// first of the runs that continue one another.
func (m *Machine) Workload() string { return m.messages.workload }

// Conversation is the history so far, for a run that continues this one. Once
// the run has ended it includes the messages that came too late to be read.
func (m *Machine) Conversation() ([]*llm.Message, error) { return m.messages.history.Messages() }

// Transcript is the conversation as it stands, for showing: it may end with
// calls that have no result yet.
func (m *Machine) Transcript() []*llm.Message { return m.messages.history.All() }

// Unread are messages that came while the run went and join the conversation
// with its next cycle. They must not be changed.
func (m *Machine) Unread() []*llm.Message { return slices.Clip(m.messages.unread) }

// Apply folds one event. It returns [ErrUnsupported] for a journal of a newer
// version and [ErrMisfit] for an event that has no place; an event of a kind
// that this version does not know is passed over.
func (m *Machine) Apply(e *event.Event) error {
	before := m.run.Taint
	err := m.apply(e)
	m.calls.follow(&m.run, &m.permissions, e.Data, before != m.run.Taint)
	if _, resolved := e.Data.(event.ToolCall); resolved && m.calls.total.unresolved == 0 && m.progress.repetition.Warned() {
		m.calls.listAsked()
	}
	m.measure()
	return err
}

func (m *Machine) apply(e *event.Event) error {
	if m.run.phase == phaseEnded {
		return fmt.Errorf("%w: %s after the run has ended", ErrMisfit, e.Type())
	}
	m.run.Fold(e, m.calls.asking())
	started, first := e.Data.(event.RunStarted)
	switch {
	case m.run.phase != phaseNew && first:
		return fmt.Errorf("%w: the run has started already", ErrMisfit)
	case m.run.phase != phaseNew:
		return m.fold(e)
	case !first:
		return fmt.Errorf("%w: the journal begins with %s", ErrMisfit, e.Type())
	}
	return m.applyStarted(e, started)
}

// fold takes in an event of a run that has started. What follows from it is with
// the part of the machine that it is about.
func (m *Machine) fold(e *event.Event) error {
	switch d := e.Data.(type) {
	case event.CycleStart:
		return m.applyCycleStart(d)
	case event.ModelRequested:
		return m.applyRequested(d)
	case event.ModelResponse:
		return m.applyResponse(&d)
	case event.ModelAttemptFailed:
		return m.applyAttemptFailed(&d)
	case event.ModelRetrying:
		return m.applyRetrying(e, d)
	case event.AnswerChecked:
		return m.turn.check(&m.run, d)
	case event.ToolResults:
		return m.applyResults()
	case event.Nudge:
		return m.applyNudge(d)
	case event.Stuck:
		return m.progress.applyStuck(&m.run, &m.calls, &d)
	case event.HistoryCompressed:
		return m.applyCompressed(d)
	case event.HookResult:
		m.applyHook(e, &d)
	case event.InputReceived:
		m.run.Taint = m.run.Taint.With(d.Taint)
		m.messages.received(d)
	case event.PermissionAdded:
		m.permissions.added = append(m.permissions.added, d)
	case event.BudgetRefused, event.BudgetReserved, event.BudgetCommitted, event.BudgetWarning, event.BudgetOverrun, event.BudgetRaised:
		return m.applyBudget(d)
	case event.PauseRequested:
		m.run.pause = true
	case event.RunResumed:
		m.applyResumed(d)
	case event.RunForked:
		return m.applyForked(e, d)
	case event.RunTerminatedBy:
		return m.applyTerminatedBy()
	case event.RunCompleted:
		return m.applyCompleted()
	default:
		return m.foldCall(e)
	}
	return nil
}

// foldCall takes in an event about one call of the answer.
func (m *Machine) foldCall(e *event.Event) error {
	switch d := e.Data.(type) {
	case event.ToolCall:
		return m.applyToolCall(&d)
	case event.PolicyDecision:
		return m.calls.onOpen(&m.run, e, d.CallID, func(c *call) {
			c.judged(&d)
			if !permits(d.Decision) {
				m.decided(c, "was not permitted", m.messages.quoted(m.run.Taint, c.ref.Name, d.Reason))
			}
		})
	case event.ToolPendingApproval:
		return m.calls.onOpen(&m.run, e, d.CallID, func(c *call) { m.calls.ask(c, d) })
	case event.ToolApprovalResolved:
		m.applyApproval(d.Resolution())
	case event.ToolStarted:
		return m.calls.applyStarted(&m.run, e, d)
	case event.ToolAttemptFailed:
		return m.calls.applyAttemptFailed(&m.run, e, &d)
	case event.ToolRetrying:
		return m.calls.applyRetrying(&m.run, e, d)
	case event.ToolResult:
		return m.calls.onOpen(&m.run, e, d.CallID, func(c *call) { m.settle(c, &d) })
	case event.ChildStarted:
		return m.calls.applyChildStarted(&m.run, e, d)
	case event.ChildParked:
		return m.calls.onChild(&m.run, e, d.CallID, d.Child)
	case event.ChildWaiting:
		return m.calls.onChild(&m.run, e, d.CallID, d.Child)
	case event.ChildFinished:
		return m.calls.onChild(&m.run, e, d.CallID, d.Child)
	}
	return nil
}
