package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/history"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
)

// ErrUnsupported is returned for a journal that another version wrote in a way
// that this one does not understand.
var ErrUnsupported = errors.New("agent: journal needs a newer version")

// Machine is the state of one agent run. It is built by applying the run's
// events in order, and is not safe for concurrent use.
type Machine struct {
	run     string
	cfg     Config
	history history.History
	phase   phase
	cycle   int
	// answered counts the model calls whose outcome is known.
	answered int
	spent    budget.Spent
	usage    llm.Usage
	cost     llm.Cost
	last     time.Time
	idle     bool
	parked   *event.RunParked

	model    attempt
	response *event.ModelResponse
	calls    []*call
	lastText string

	inputs      []string
	cancel      *event.CancelRequested
	pause       bool
	stopBudget  string
	nudges      int
	empties     int
	truncations int
	malformed   int
	pauses      int

	end     *event.RunTerminatedBy
	outcome *event.Outcome
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

// New returns a machine that expects run.started.
func New() *Machine { return &Machine{idle: true} }

var _ machine.Machine = (*Machine)(nil)

// State says where the run stands.
func (m *Machine) State() machine.State {
	s := machine.State{
		Phase: machine.Running, Parked: m.parked, Outcome: m.outcome,
		Cycle: m.cycle, Usage: m.usage, Cost: m.cost,
	}
	switch {
	case m.phase == phaseEnded:
		s.Phase = machine.Ended
	case m.parked != nil:
		s.Phase = machine.Parked
	}
	for _, c := range m.calls {
		if c.pending != nil && c.approval == nil && c.result == nil {
			s.Pending = append(s.Pending, *c.pending)
		}
	}
	return s
}

// Config is the run's configuration, as its first event pinned it.
func (m *Machine) Config() Config { return m.cfg }

// Conversation is the history so far, for a run that continues this one.
func (m *Machine) Conversation() ([]*llm.Message, error) { return m.history.Messages() }

// Apply folds one event.
func (m *Machine) Apply(e *event.Event) error {
	m.clock(e)
	if m.phase == phaseNew {
		d, ok := e.Data.(event.RunStarted)
		if !ok {
			return fmt.Errorf("agent: journal begins with %s", e.Type())
		}
		return m.applyStarted(e, d)
	}
	switch d := e.Data.(type) {
	case event.CycleStart:
		m.applyCycleStart(d)
	case event.ModelRequested:
		m.model.requested(d)
		m.spent.ModelCalls++
	case event.ModelResponse:
		return m.applyResponse(&d)
	case event.ModelAttemptFailed:
		m.spend(d.Usage, d.Cost)
		if d.Class != llm.ClassInterrupted {
			m.answered++
		}
		m.model.failed(&d)
	case event.ModelRetrying:
		m.model.retrying(d, e.Time, m.cfg.Targets)
	case event.ToolCall:
		return m.applyToolCall(d)
	case event.PolicyDecision:
		return m.onCall(d.CallID, func(c *call) { c.verdict = &d })
	case event.ToolPendingApproval:
		return m.onCall(d.CallID, func(c *call) { c.pending = &d })
	case event.ToolApprovalResolved:
		return m.onCall(d.CallID, func(c *call) { c.approval = &d })
	case event.ToolStarted:
		m.spent.ToolCalls++
		return m.onCall(d.CallID, func(c *call) { c.attempt, c.running, c.orphan = d.Attempt, true, false })
	case event.ToolResult:
		return m.onCall(d.CallID, func(c *call) { c.settle(&d); m.noteResult(&d) })
	case event.ToolResults:
		return m.applyResults()
	case event.Nudge:
		m.applyNudge(d)
	case event.InputReceived:
		m.inputs = append(m.inputs, d.Text)
	case event.BudgetRaised:
		return m.raise(d)
	case event.CancelRequested:
		m.cancel = &d
	case event.PauseRequested:
		m.pause = true
	case event.RunParked:
		m.parked = &d
	case event.RunResumed:
		m.applyResumed()
	case event.RunTerminatedBy:
		m.end, m.phase = &d, phaseEnding
	case event.RunCompleted:
		m.outcome, m.phase = &d.Outcome, phaseEnded
	}
	return nil
}

// clock counts the time that the run was going. What lies before run.resumed
// was parked, or nobody drove it; a laptop's sleep must not burn the budget.
func (m *Machine) clock(e *event.Event) {
	switch e.Data.(type) {
	case event.RunResumed:
		m.idle = false
	case event.RunParked:
		m.tick(e.Time)
		m.idle = true
	default:
		m.tick(e.Time)
	}
	m.last = e.Time
}

func (m *Machine) tick(now time.Time) {
	if d := now.Sub(m.last); !m.idle && d > 0 {
		m.spent.Active += d
	}
}

func (m *Machine) applyStarted(e *event.Event, d event.RunStarted) error {
	if d.Vocabulary > event.Version || d.Machine != Version {
		return fmt.Errorf("%w: run %s was written by machine %s, vocabulary %d",
			ErrUnsupported, e.Run, d.Machine, d.Vocabulary)
	}
	if err := json.Unmarshal(d.Config, &m.cfg); err != nil {
		return fmt.Errorf("agent: decode config of run %s: %w", e.Run, err)
	}
	if len(m.cfg.Targets) == 0 {
		return fmt.Errorf("agent: run %s names no model", e.Run)
	}
	m.run, m.idle, m.phase = e.Run, false, phaseReady
	if d.From != nil {
		m.history.Append(d.From.History...)
	}
	if d.Input != nil && len(d.Input.Parts) > 0 {
		m.history.Append(d.Input)
	}
	return nil
}

func (m *Machine) applyCycleStart(d event.CycleStart) {
	m.cycle, m.spent.Cycles, m.phase = d.Cycle, d.Cycle, phaseModel
	m.response, m.calls = nil, nil
	m.model.begin()
	for _, text := range m.inputs {
		m.history.User(text)
	}
	m.inputs = nil
}

func (m *Machine) applyResponse(d *event.ModelResponse) error {
	m.spend(d.Usage, d.Cost)
	m.answered++
	m.model.inFlight = false
	m.response, m.phase = d, phaseTools
	parts := llm.Parts(d.Parts)
	text := parts.Text()
	if text != "" {
		m.lastText = text
	}
	m.history.Assistant(parts, d.Model)
	refs := parts.ToolCalls()
	if len(refs) == 0 {
		m.phase = phaseSettled
	}
	if len(refs) != len(d.ToolCalls) {
		return fmt.Errorf("agent: response of cycle %d names %d calls and holds %d", d.Cycle, len(d.ToolCalls), len(refs))
	}
	m.calls = make([]*call, len(refs))
	for i, ref := range refs {
		m.calls[i] = &call{index: i, ref: ref}
	}
	m.countTurn(d, text, len(refs))
	return nil
}

// countTurn keeps the counters of consecutive odd answers.
func (m *Machine) countTurn(d *event.ModelResponse, text string, calls int) {
	count := func(n *int, hit bool) {
		if hit {
			*n++
		} else {
			*n = 0
		}
	}
	whole := d.FinishReason == llm.FinishEnd || d.FinishReason == llm.FinishTool
	count(&m.empties, whole && calls == 0 && !spoken(llm.Parts(d.Parts)))
	count(&m.truncations, d.FinishReason == llm.FinishLength)
	count(&m.pauses, d.FinishReason == llm.FinishPause)
	count(&m.malformed, d.FinishReason == llm.FinishMalformed)
	if calls > 0 {
		m.nudges = 0
	}
}

func (m *Machine) spend(u llm.Usage, c llm.Cost) {
	if m.spent.ModelCalls <= 1 {
		m.cost.Priced = c.Priced
	}
	m.usage = m.usage.Add(u)
	m.cost.USD += c.USD
	m.cost.Priced = m.cost.Priced && c.Priced
	m.spent.Input += u.Input
	m.spent.Output += u.Output
	m.spent.USD = m.cost.USD
}

func (m *Machine) applyToolCall(d event.ToolCall) error {
	for i, c := range m.calls {
		if c.ref.CallID == d.CallID {
			c.resolved = &d
			return m.history.Call(i, d)
		}
	}
	return fmt.Errorf("agent: tool_call %s belongs to no call of cycle %d", d.CallID, m.cycle)
}

func (m *Machine) onCall(id string, change func(*call)) error {
	for _, c := range m.calls {
		if c.ref.CallID == id {
			change(c)
			return nil
		}
	}
	return fmt.Errorf("agent: no call %s in cycle %d", id, m.cycle)
}

func (m *Machine) noteResult(d *event.ToolResult) {
	if d.ErrorType == event.ErrorBudget {
		m.stopBudget = m.cfg.Limits.BeforeToolCall(m.spent)
	}
}

func (m *Machine) applyResults() error {
	results := make([]llm.ToolResult, len(m.calls))
	for i, c := range m.calls {
		results[i] = llm.ToolResult{
			CallID: c.ref.CallID, Name: c.ref.Name,
			Output: c.result.Output, IsError: c.result.IsError, Media: c.result.Media,
		}
	}
	m.phase = phaseSettled
	return m.history.Results(results)
}

func (m *Machine) applyNudge(d event.Nudge) {
	m.history.User(d.Text)
	if d.Kind == event.NudgeNoToolCall {
		m.nudges++
	}
	m.phase = phaseReady
}

func (m *Machine) raise(d event.BudgetRaised) error {
	raw, err := json.Marshal(map[string]float64{d.Setting: d.Value})
	if err == nil {
		err = json.Unmarshal(raw, &m.cfg.Limits)
	}
	if err != nil {
		return fmt.Errorf("agent: raise %s: %w", d.Setting, err)
	}
	return nil
}

// applyResumed turns what was in flight into orphans: their outcome is
// unknown, and Next decides by effect class (FIELD F4).
func (m *Machine) applyResumed() {
	m.parked, m.pause = nil, false
	m.model.orphan = m.model.inFlight
	for _, c := range m.calls {
		if c.running {
			c.running, c.orphan = false, true
		}
	}
}

// sentence joins what a reason or a message is made of, skipping what is empty.
func sentence(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ": ")
}

// spoken says that an answer holds something: text, a call, or an item.
func spoken(parts llm.Parts) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if strings.TrimSpace(p.Text) != "" {
				return true
			}
		case llm.Reasoning:
		default:
			return true
		}
	}
	return false
}
