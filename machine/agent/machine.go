package agent

import (
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/fence"
	"github.com/pawlrun/pawl/history"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/tree"
	"github.com/pawlrun/pawl/question"
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
	run tree.Base
	// workload is the first of the runs that continue one another, or share
	// events as forks do: their requests have a prefix in common.
	workload string

	cfg Config
	// policy is the version of the policy that judges.
	policy  string
	history history.History
	phase   phase
	cycle   int
	// answered counts the model calls whose outcome is known.
	answered int
	account  account
	size     size
	novelty  novelty

	model    attempt
	response *event.ModelResponse
	calls    []*call
	// questions are those about the calls.
	questions     question.List
	standing      standing
	turn          turn
	failureCounts failureCounts
	answer        answer

	inputs     []*llm.Message
	pause      bool
	compaction compaction
	// permissions are what people allowed for the rest of the run.
	permissions []event.PermissionAdded
	fence       fence.Fence
	// system is the owner's text, and what the model must know of fences.
	system string
	// beforeRun and afterRun are the hooks about the run as a whole.
	beforeRun, afterRun hooks
	repetition          stop.Repetition
	// stuck is what was decided about repetition in this cycle.
	stuck *event.Stuck
	// asked are the calls of the answer as the watch for repetition is shown them,
	// listed once somebody needs them.
	asked []stop.Asked
	// stopBudget is the setting that refused a call of this cycle.
	stopBudget string

	actions []machine.Action
}

// phase is the position within a cycle.
type phase uint8

const (
	phaseNew phase = iota
	// phaseReady: between cycles, history whole.
	phaseReady
	// phaseModel: the cycle has begun and its answer is not there yet.
	phaseModel
	// phaseTools: the answer is journalled, its calls are not all settled.
	phaseTools
	// phaseSettled: the cycle is whole; what follows is not decided.
	phaseSettled
	// phaseEnding: terminated_by is journalled, run.completed is due.
	phaseEnding
	phaseEnded
)

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
	s := m.run.State(m.asking())
	s.Cycle, s.Deadline, s.Pending = m.cycle, m.deadline(), m.pending()
	return s
}

// Config is the run's configuration, as its first event pinned it and as
// raised budgets changed it.
func (m *Machine) Config() Config { return m.cfg }

// Spent is what the run has used, and how long it has been going up to its last
// event.
func (m *Machine) Spent() budget.Spent { return m.run.Spent }

// Workload is the id under which providers know the conversation: that of the
// first of the runs that continue one another.
func (m *Machine) Workload() string { return m.workload }

// Conversation is the history so far, for a run that continues this one. Once
// the run has ended it includes the messages that came too late to be read.
func (m *Machine) Conversation() ([]*llm.Message, error) { return m.history.Messages() }

// Transcript is the conversation as it stands, for showing: it may end with
// calls that have no result yet.
func (m *Machine) Transcript() []*llm.Message { return m.history.All() }

// Unread are messages that came while the run went and join the conversation
// with its next cycle. They must not be changed.
func (m *Machine) Unread() []*llm.Message { return slices.Clip(m.inputs) }

// Apply folds one event. It returns [ErrUnsupported] for a journal of a newer
// version and [ErrMisfit] for an event that has no place; an event of a kind
// that this version does not know is passed over.
func (m *Machine) Apply(e *event.Event) error {
	err := m.apply(e)
	m.recount(e.Data)
	return err
}

func (m *Machine) apply(e *event.Event) error {
	if m.phase == phaseEnded {
		return fmt.Errorf("%w: %s after the run has ended", ErrMisfit, e.Type())
	}
	m.run.Fold(e, m.asking())
	if m.phase == phaseNew {
		d, ok := e.Data.(event.RunStarted)
		if !ok {
			return fmt.Errorf("%w: the journal begins with %s", ErrMisfit, e.Type())
		}
		return m.applyStarted(e, d)
	}
	switch d := e.Data.(type) {
	case event.RunStarted:
		return fmt.Errorf("%w: the run has started already", ErrMisfit)
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
	case event.ToolCall:
		return m.applyToolCall(&d)
	case event.PolicyDecision:
		return m.onOpenCall(e, d.CallID, func(c *call) {
			c.judged(&d)
			if !permits(d.Decision) {
				m.decided(c, "was not permitted", m.quoted(c.ref.Name, d.Reason))
			}
		})
	case event.HookResult:
		if c := m.call(d.CallID); c != nil {
			c.since = e.Time
		}
		m.applyHook(&d)
	case event.ToolPendingApproval:
		return m.onOpenCall(e, d.CallID, func(c *call) {
			c.pending, m.standing.until = m.questions.Ask(d.Question()), tree.Sooner(m.standing.until, d.ExpiresAt)
		})
	case event.ToolApprovalResolved:
		m.applyApproval(d.Resolution())
	case event.PermissionAdded:
		m.permissions = append(m.permissions, d)
	case event.ToolStarted:
		return m.applyToolStarted(e, d)
	case event.ToolAttemptFailed:
		return m.applyToolAttemptFailed(e, &d)
	case event.ToolRetrying:
		return m.applyToolRetrying(e, d)
	case event.ToolResult:
		return m.onOpenCall(e, d.CallID, func(c *call) { m.settle(c, &d) })
	case event.ToolResults:
		return m.applyResults()
	case event.AnswerChecked:
		return m.applyAnswerChecked(d)
	case event.Nudge:
		return m.applyNudge(d)
	case event.HistoryCompressed:
		return m.applyCompressed(d)
	case event.Stuck:
		return m.applyStuck(&d)
	case event.InputReceived:
		m.run.Taint = m.run.Taint.With(d.Taint)
		if said := d.Message(); said != nil {
			m.inputs = append(m.inputs, said)
		}
	case event.ChildStarted:
		return m.applyChildStarted(e, d)
	case event.ChildParked:
		return m.onChild(e, d.CallID, d.Child)
	case event.ChildWaiting:
		return m.onChild(e, d.CallID, d.Child)
	case event.ChildFinished:
		return m.onChild(e, d.CallID, d.Child)
	case event.BudgetRefused:
		return m.applyRefused(d)
	case event.BudgetReserved:
		return m.applyReserved(d)
	case event.BudgetCommitted:
		return m.applyCommitted(d)
	case event.BudgetWarning:
		m.account.warned = m.account.warned.Warned(d.Setting, d.Percent)
	case event.BudgetOverrun:
		m.run.Overrun = d.Setting
	case event.BudgetRaised:
		m.applyRaised(d)
	case event.PauseRequested:
		m.pause = true
	case event.RunResumed:
		m.applyResumed(d)
	case event.RunForked:
		return m.applyForked(e, d)
	case event.RunTerminatedBy:
		return m.applyTerminatedBy()
	case event.RunCompleted:
		return m.applyCompleted()
	}
	return nil
}
