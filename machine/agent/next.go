package agent

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/stop"
)

// Next returns what is due. The order of its checks is the order of a cycle.
func (m *Machine) Next() []machine.Action {
	m.actions = m.actions[:0]
	if m.parked != nil {
		return nil
	}
	switch m.phase {
	case phaseReady:
		m.nextCycle()
	case phaseModel:
		m.nextAttempt()
	case phaseTools:
		m.nextCalls()
	case phaseSettled:
		m.nextDecision()
	case phaseEnding:
		m.record(event.RunCompleted{Outcome: m.conclude()})
	}
	return m.actions
}

func (m *Machine) record(d event.Data) { m.actions = append(m.actions, machine.Record{Data: d}) }

// terminate records why the run ends; the outcome follows from it.
func (m *Machine) terminate(d event.RunTerminatedBy) { m.record(d) }

// nextCycle opens a cycle, unless something stands against it: a cancel first
// (ALF-8), then a pause, then the limits (ALDO-13, HAR-22).
func (m *Machine) nextCycle() {
	switch {
	case m.cancel != nil:
		m.terminate(event.RunTerminatedBy{Reason: event.ReasonCancelled, Detail: m.cancel.Reason})
	case m.pause:
		m.record(event.RunParked{Reason: event.ParkPaused})
	case m.history.Len() == 0 && len(m.inputs) == 0:
		m.record(event.RunParked{Reason: event.ParkInput, Detail: "the run has no task yet"})
	case m.cfg.Limits.MaxCycles > 0 && m.cycle >= m.cfg.Limits.MaxCycles:
		m.terminate(event.RunTerminatedBy{Reason: event.ReasonMaxCycles, Limit: "max_cycles"})
	default:
		if setting := m.cfg.Limits.BeforeModelCall(m.spent); setting != "" {
			m.exhausted(setting)
			return
		}
		m.record(event.CycleStart{Cycle: m.cycle + 1, MaxCycles: m.cfg.Limits.MaxCycles})
	}
}

// exhausted ends the run at a budget. A budget-exhausted condition in the
// owner's list turns a money stop into the condition it names (PRODUCT 5).
func (m *Machine) exhausted(setting string) {
	_, money := m.cfg.Limits.CostCap()
	if i := m.cfg.conditionBudget(); i >= 0 && setting == money {
		m.terminate(event.RunTerminatedBy{
			Reason: event.ReasonConditionMet, Index: &i, Kind: string(stop.BudgetExhausted), Limit: setting,
		})
		return
	}
	m.terminate(event.RunTerminatedBy{Reason: event.BudgetReason(setting), Limit: setting})
}

// nextAttempt asks for a model call, or decides about the one that failed.
func (m *Machine) nextAttempt() {
	switch {
	case m.model.orphan:
		m.record(event.ModelAttemptFailed{
			Attempt: m.model.number, Model: m.target().Model, Class: llm.ClassInterrupted,
			Message: "the process stopped while the call was in flight",
			Usage:   llm.Usage{Estimated: true}, Cost: llm.Cost{Priced: m.target().Price != nil},
		})
	case m.model.inFlight:
	case m.cancel != nil:
		m.terminate(event.RunTerminatedBy{Reason: event.ReasonCancelled, Detail: m.cancel.Reason})
	case m.model.failure != nil:
		m.nextRetry(m.model.failure)
	default:
		if setting := m.cfg.Limits.BeforeModelCall(m.spent); setting != "" {
			m.exhausted(setting)
			return
		}
		m.callModel()
	}
}

func (m *Machine) target() Target { return m.cfg.Targets[m.model.target] }

func (m *Machine) callModel() {
	messages, err := m.history.Messages()
	if err != nil {
		m.internal(err)
		return
	}
	t := m.target()
	m.actions = append(m.actions, machine.CallModel{
		Cycle: m.cycle, Attempt: m.model.number, Target: t.Model, Price: t.Price,
		Request: llm.Request{
			System: m.cfg.System, Messages: messages, Tools: m.cfg.Tools,
			MaxTokens: m.cfg.MaxTokens, Temperature: m.cfg.Temperature, Schema: m.cfg.Schema,
			ProviderTools: m.cfg.ProviderTools, CacheKey: m.run, Ordinal: m.answered,
		},
		Stream: !m.cfg.Whole, NotBefore: m.model.notBefore, Deadline: m.deadline(),
	})
}

func (m *Machine) internal(err error) {
	m.terminate(event.RunTerminatedBy{
		Reason: event.ReasonInternal, Error: &event.Failure{Class: "internal", Message: err.Error()},
	})
}

// deadline is when the wall time is used up if the run goes on from here.
func (m *Machine) deadline() time.Time {
	left, limited := m.cfg.Limits.Remaining(m.spent)
	if !limited {
		return time.Time{}
	}
	return m.last.Add(max(left, 0))
}

// modelCalls is how many calls one request may take in total (ALF-44).
func (m *Machine) modelCalls() int {
	if r := m.cfg.Limits.MaxModelRetries; r != nil {
		return *r + 1
	}
	return 5
}

func (m *Machine) nextRetry(f *event.ModelAttemptFailed) {
	seed := m.run + "/" + strconv.Itoa(m.cycle) + "/" + strconv.Itoa(f.Attempt)
	if m.deadlinePassed(f) {
		m.exhausted("max_wall_time_seconds")
		return
	}
	v := judge(f, m.model.target, len(m.cfg.Targets), m.modelCalls(), seed)
	switch {
	case v.retry:
		next := f.Attempt + 1
		if f.Class == llm.ClassInterrupted {
			next = f.Attempt
		}
		m.record(event.ModelRetrying{
			Attempt: next, DelayMs: v.delay.Milliseconds(),
			Reason:    sentence(string(f.Class), f.Message),
			FromModel: f.Model, ToModel: m.cfg.Targets[v.target].Model,
		})
	case v.park:
		until := m.last.Add(v.until)
		m.record(event.RunParked{
			Reason: event.ParkPaused, Until: &until,
			Detail: fmt.Sprintf("%s asks to wait %s, longer than an unattended run waits", f.Model, v.until),
		})
	default:
		reason := event.ReasonModelError
		if f.Class == llm.ClassRefused {
			reason = event.ReasonRefused
		}
		m.terminate(event.RunTerminatedBy{Reason: reason, Error: &event.Failure{
			Class: string(f.Class), Message: f.Message, Status: f.Status, RequestID: f.RequestID,
		}})
	}
}

func (m *Machine) deadlinePassed(f *event.ModelAttemptFailed) bool {
	return f.Class == llm.ClassInterrupted && m.cfg.Limits.BeforeModelCall(m.spent) == "max_wall_time_seconds"
}

// nextCalls moves every call of the cycle one step: resolve, refuse what
// cannot run, decide, ask, dispatch, settle.
func (m *Machine) nextCalls() {
	open := false
	for _, c := range m.calls {
		if c.result != nil {
			continue
		}
		open = true
		m.nextStep(c)
	}
	if !open {
		m.record(m.results())
		return
	}
	if len(m.actions) > 0 || m.cancel != nil {
		return
	}
	for _, c := range startable(m.cfg.Dispatch, m.calls, m.cfg.Limits.MaxParallelTools) {
		m.runTool(c)
	}
	if len(m.actions) == 0 {
		m.ask()
	}
}

// nextStep decides about one unsettled call as far as no effect is needed.
func (m *Machine) nextStep(c *call) {
	switch {
	case c.resolved == nil:
		m.actions = append(m.actions, machine.Resolve{Index: c.index, CallID: c.ref.CallID, Call: c.ref})
	case c.running:
	case c.orphan && m.cancel == nil && c.repeatable():
		m.runTool(c)
	case c.orphan:
		m.record(c.failed(event.ErrorInDoubt, "the process stopped while this call was running, so it is not known "+
			"whether it took effect; it was not repeated because its effect class is "+
			string(c.resolved.Effect)+". Check the state before you call it again"))
	case m.cancel != nil:
		m.record(c.failed(event.ErrorCancelled, "the run was cancelled before this call ran"))
	case m.response.FinishReason == llm.FinishLength:
		m.record(c.failed(event.ErrorTruncated, fmt.Sprintf("the answer was cut off after %d output tokens, so this call "+
			"was not run: its arguments may be incomplete. Make the call again with smaller arguments",
			m.response.Usage.Output)))
	case m.response.FinishReason == llm.FinishRefusal:
		m.record(c.failed(event.ErrorDenied, "the answer was refused by the provider, so this call was not run"))
	case c.resolved.Problem != nil:
		m.record(c.failed(c.resolved.Problem.Type, c.resolved.Problem.Message))
	case c.verdict == nil:
		m.decide(c)
	case c.verdict.Decision == event.DecisionDeny:
		m.record(c.failed(event.ErrorDenied, sentence("not permitted", c.verdict.Reason)))
	case c.verdict.Decision == event.DecisionAsk:
		m.nextApproval(c)
	}
}

// decide checks the tool-call budget and asks policy; both answers are events.
func (m *Machine) decide(c *call) {
	if setting := m.cfg.Limits.BeforeToolCall(m.spentWith(c)); setting != "" {
		m.record(c.failed(event.ErrorBudget, "the run's budget "+setting+" is used up, so this call was not run"))
		return
	}
	v := m.cfg.Policy.Decide(c.resolved)
	m.record(event.PolicyDecision{
		CallID: c.ref.CallID, Decision: v.Decision, Rule: v.Rule, Reason: v.Reason, Digest: c.resolved.Digest,
	})
}

// spentWith counts the calls of this answer that are already let through.
func (m *Machine) spentWith(c *call) (s budget.Spent) {
	s = m.spent
	for _, other := range m.calls[:c.index] {
		if other.attempt == 0 && other.result == nil {
			s.ToolCalls++
		}
	}
	return s
}

func (m *Machine) nextApproval(c *call) {
	switch {
	case c.pending == nil:
		m.record(event.ToolPendingApproval{
			CallID: c.ref.CallID, Tool: c.ref.Name, Args: c.resolved.Args, Digest: c.resolved.Digest,
			Reason: c.verdict.Reason,
		})
	case c.approval == nil && m.cfg.Approve == ApproveAll:
		m.record(m.resolution(c, event.ApprovalApproved, "--approve all"))
	case c.approval == nil && m.cfg.Approve == ApproveDeny:
		m.record(m.resolution(c, event.ApprovalRejected, "--approve deny"))
	case c.approval == nil:
	case c.approval.Kind == event.ApprovalRejected:
		m.record(c.rejected(event.ErrorRejected, c.approval.Reason))
	case c.approval.Kind == event.ApprovalExpired:
		m.record(c.rejected(event.ErrorExpired, "the approval expired"))
	}
}

func (m *Machine) resolution(c *call, kind event.ApprovalKind, by string) event.ToolApprovalResolved {
	return event.ToolApprovalResolved{
		CallID: c.ref.CallID, Kind: kind, Digest: c.resolved.Digest, Approver: by, At: m.last,
		Reason: "decided by the run's setting " + by,
	}
}

func (m *Machine) runTool(c *call) {
	m.actions = append(m.actions, machine.RunTool{
		CallID: c.ref.CallID, Attempt: c.attempt + 1, Key: m.run + ":" + c.ref.CallID, Tool: c.ref.Name,
		Args: c.resolved.Args, Deadline: m.deadline(), MaxResultChars: m.cfg.Limits.MaxResultChars,
	})
}

// ask puts every pending approval to a person, once nothing else is due.
func (m *Machine) ask() {
	for _, c := range m.calls {
		if c.running {
			return
		}
	}
	for _, c := range m.calls {
		if c.result == nil && c.pending != nil && c.approval == nil {
			m.actions = append(m.actions, machine.Ask{Approval: *c.pending})
		}
	}
}

func (m *Machine) results() event.ToolResults {
	refs := make([]event.ResultRef, len(m.calls))
	for i, c := range m.calls {
		refs[i] = event.ResultRef{CallID: c.ref.CallID, Tool: c.ref.Name, IsError: c.result.IsError}
	}
	return event.ToolResults{Cycle: m.cycle, Results: refs}
}
