package agent

import (
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
)

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

// Configured is the machine of an agent's run, in any version.
type Configured interface {
	machine.Conversing
	// Config is the current configuration of the run.
	Config() Config
}

// New returns a machine that expects run.started.
func New() *Machine { return &Machine{} }

var _ machine.Funder = (*Machine)(nil)

// State returns the state of the run.
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

// Bounds implements [machine.Bounded].
func (m *Machine) Bounds() budget.Limits { return m.run.cfg.Limits }

// Spent returns the run's usage, and its time up to its last event.
func (m *Machine) Spent() budget.Spent { return m.run.Spent }

// Workload returns the id under which providers know the conversation: that of the
// first of the runs that continue one another.
func (m *Machine) Workload() string { return m.messages.workload }

// Conversation returns the history so far, for a run that continues this one. Once the
// run has ended it includes the messages that came too late to be read.
func (m *Machine) Conversation() ([]*llm.Message, error) { return m.messages.history.Messages() }

// Transcript returns the current conversation, for display: it may end with calls that
// have no result yet.
func (m *Machine) Transcript() []*llm.Message { return m.messages.history.All() }

// Unread returns the messages that arrived during the run and join the conversation
// with its next cycle. They must not be changed.
func (m *Machine) Unread() []*llm.Message { return m.messages.due() }

// Admit compares a child's call with what is left of the run's budget; see
// [machine.Funder].
func (m *Machine) Admit(c budget.Call, asked budget.Amount) machine.Grant {
	return m.run.Admit(c, m.run.cfg.Limits, asked, m.run.cfg.asksAt)
}

// Drawn returns the open reservations of a child.
func (m *Machine) Drawn(child string) []event.BudgetReserved { return m.run.Drawn(child) }

// CanKeep implements [machine.Capped]: a cap in money needs the price of every model
// that the run may call. The cap for which the run has parked counts what has a price,
// and may be raised.
func (m *Machine) CanKeep(setting string, value float64) error {
	if !budget.IsMoney(setting) || value <= 0 || m.run.Parked != nil && budget.IsMoney(m.run.Parked.Limit) {
		return nil
	}
	names := m.run.cfg.Unpriced()
	if len(names) == 0 {
		return nil
	}
	return &budget.UnpricedError{Models: names, USD: value}
}

// Fence returns the fence around untrusted text in the run's conversation, nil for
// none. A run that continues this one uses the same, so that the prefix of its requests
// stays the same.
func (m *Machine) Fence() *event.Fence {
	if !m.messages.fence.Active() {
		return nil
	}
	return &event.Fence{Nonce: m.messages.fence.Nonce()}
}

// Model returns the model in use: the first of the chain, or the current fallback.
func (m *Machine) Model() string { return m.target().Model }

func (m *Machine) target() Target { return m.run.cfg.Targets[m.model.target] }

// Apply folds one event. It returns [ErrUnsupported] for a journal of a newer version
// and [ErrMisfit] for an event that cannot follow; it ignores an event of a kind that
// this version does not know.
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

// fold folds an event of a run that has started, by the part of the machine that it
// concerns.
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
		m.permissions.switchTo(policy.Mode(d.Mode))
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

// foldCall folds an event about one call of the answer.
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
	case event.ToolTask:
		return m.calls.applyTask(&m.run, e, d)
	case event.ToolInputRequired:
		return m.calls.askForm(&m.run, e, d)
	case event.ToolInputResolved:
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

// ErrUnsupported is returned for a journal of another version that this one does not
// understand.
var ErrUnsupported = machine.ErrUnsupported

// ErrMisfit is returned for an event that cannot follow the earlier ones, such as a
// second result of a call or anything after run.completed. A driver that gets it must
// not journal the event.
var ErrMisfit = tree.ErrMisfit

// run is the state that all parts of a machine use: the configuration, the
// phase, and what the run and its children have used.
type run struct {
	tree.Base
	cfg   Config
	phase phase
	cycle int
	// pause reports whether the run is to park between two effects.
	pause bool
	// rooms holds what providers reported about the room for requests, by target.
	rooms map[string]llm.Room
	// answered counts the model calls whose outcome is known.
	answered int
}

// phase is the position within a cycle.
type phase uint8

const (
	phaseNew phase = iota
	// phaseReady is between cycles; the history is complete.
	phaseReady
	// phaseModel is after the start of a cycle, before its answer.
	phaseModel
	// phaseTools is after the answer; its calls are not all settled.
	phaseTools
	// phaseSettled is after the cycle; what follows is not decided.
	phaseSettled
	// phaseEnding is after terminated_by; run.completed is due.
	phaseEnding
	phaseEnded
)

func (r *run) cancelled() machine.Action {
	if r.Cancel == nil {
		return nil
	}
	return record(event.RunTerminatedBy{Reason: event.ReasonCancelled, Detail: r.Cancel.Reason})
}

// atCeiling reports whether the last allowed cycle has begun.
func (r *run) atCeiling() bool {
	return r.cfg.Limits.MaxCycles > 0 && r.cycle >= r.cfg.Limits.MaxCycles
}

// outOfCycles ends the run if it may have no other cycle.
func (r *run) outOfCycles() machine.Action {
	if !r.atCeiling() {
		return nil
	}
	return record(event.RunTerminatedBy{Reason: event.ReasonMaxCycles, Limit: budget.CycleCap})
}

// step returns what the run may have to do next: an action, or nil. A step changes
// nothing; the consequences of its action come back as an event.
type step func() machine.Action

// first returns the action of the first step that has one, nil if none has.
func first(steps ...step) machine.Action {
	for _, s := range steps {
		if a := s(); a != nil {
			return a
		}
	}
	return nil
}

func record(d event.Data) machine.Action { return machine.Record{Data: d} }

func fail(reason event.Reason, class, message string) machine.Action {
	return record(event.RunTerminatedBy{Reason: reason, Error: &event.Failure{Class: class, Message: message}})
}

func internal(err error) machine.Action { return fail(event.ReasonInternal, "internal", err.Error()) }

// several is the actions of one step that are due at once.
type several struct {
	machine.Action
	all []machine.Action
}

// together combines the actions that are not nil.
func together(actions ...machine.Action) (one machine.Action) {
	n := 0
	for _, a := range actions {
		if a != nil {
			one, n = a, n+1
		}
	}
	if n > 1 {
		return several{all: slices.Clone(actions)}
	}
	return one
}

// actions are those that are due.
type actions []machine.Action

// add adds an action, or several, or none.
func (due *actions) add(a machine.Action) {
	switch a := a.(type) {
	case nil:
	case several:
		for _, one := range a.all {
			due.add(one)
		}
	default:
		*due = append(*due, a)
	}
}

// hooks counts the requested hooks.
func (due actions) hooks() (n int) {
	for _, a := range due {
		if _, ok := a.(machine.RunHook); ok {
			n++
		}
	}
	return n
}
