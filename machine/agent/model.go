package agent

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
)

// Model is the one that the run stands on: the first of its chain, or the fallback
// that took over.
func (m *Machine) Model() string { return m.target().Model }

func (m *Machine) target() Target { return m.cfg.Targets[m.model.target] }

func (m *Machine) callModel() machine.Action {
	messages, err := m.messages.history.Messages()
	if err != nil {
		return m.internal(err)
	}
	t := m.target()
	hosted, withheld := m.providerTools()
	return machine.CallModel{
		Cycle: m.cycle, Attempt: m.model.number, Target: t.Model, Price: t.Price,
		Request: llm.Request{
			System: m.messages.system, Messages: messages, Tools: m.offered(),
			MaxTokens: m.account.maxTokens, Temperature: m.cfg.Temperature, Schema: m.cfg.Schema, SchemaInPrompt: t.NoSchema,
			ProviderTools: hosted, CacheKey: m.messages.workload, Cache: m.cfg.Cache, Ordinal: m.model.answered,
		},
		Stream: !m.cfg.NoStream, NotBefore: m.model.notBefore,
		Admission: m.run.Ledger.Admission(m.account.id), Withheld: withheld,
	}
}

// lostAttempt settles a call whose process is gone.
func (m *Machine) lostAttempt() machine.Action {
	if !m.model.orphan {
		return nil
	}
	return m.lostCall(&m.model.attempt, "")
}

func (m *Machine) lostCall(a *attempt, purpose event.Purpose) machine.Action {
	return record(event.ModelAttemptFailed{
		Attempt: a.number, Model: m.target().Model, Class: llm.ClassInterrupted, Purpose: purpose,
		Message: "the process stopped while the call was in flight",
		Usage:   m.account.unreported(m.run.Ledger), Cost: m.target().cost(m.account.unreported(m.run.Ledger)),
	})
}

// waitsTooLong ends the run where a limit on time has no room for the wait before an
// attempt.
func (m *Machine) waitsTooLong() machine.Action {
	setting := m.outlasts(m.model.notBefore)
	if setting == "" {
		return nil
	}
	return m.exhausted(tooLateToWait(setting, 0))
}

// nextRetry decides about a failed attempt. A budget that is used up, or that
// would be before the wait is over, comes first.
func (m *Machine) nextRetry() machine.Action {
	f := m.model.failure
	if f == nil {
		return nil
	}
	if a := m.nextRelief(); a != nil {
		return a
	}
	seed := m.run.ID + "/" + strconv.Itoa(m.cycle) + "/" + strconv.Itoa(f.Attempt)
	v := judge(&m.model.attempt, len(m.cfg.Targets), m.cfg.Limits.ModelCalls(), seed)
	if m.compaction.overflow == reliefGiven {
		v = verdict{retry: true, target: m.model.target}
	}
	refusal := m.refused(m.cfg.Targets[v.target])
	if setting := m.noTimeFor(v.delay); v.retry && setting != "" {
		refusal = tooLateToWait(setting, v.delay)
	}
	switch {
	case v.retry && refusal.Setting != "":
		return m.exhausted(refusal)
	case v.retry:
		return record(event.ModelRetrying{
			Attempt: f.Attempt + 1, DelayMs: v.delay.Milliseconds(),
			Reason:    sentence(string(f.Class), f.Message),
			FromModel: f.Model, ToModel: m.cfg.Targets[v.target].Model,
		})
	case v.park:
		until := m.run.Now.Add(v.delay)
		return record(event.RunParked{
			Reason: event.ParkPaused, Until: &until,
			Detail: fmt.Sprintf("%s asks for a wait of %s, longer than a run waits by itself", f.Model, v.delay.Round(time.Second)),
		})
	}
	reason := event.ReasonModelError
	if f.Class == llm.ClassRefused {
		reason = event.ReasonRefused
	}
	return m.terminate(event.RunTerminatedBy{Reason: reason, Error: &event.Failure{
		Class: string(f.Class), Message: f.Message, Status: f.Status, RequestID: f.RequestID,
	}})
}

func (m *Machine) applyRequested(d event.ModelRequested) error {
	if d.Purpose == event.PurposeSummary {
		return m.applySummaryRequested(d)
	}
	if m.phase != phaseModel || m.model.inFlight || m.model.failure != nil {
		return fmt.Errorf("%w: attempt %d at a model call, which is not due", ErrMisfit, d.Attempt)
	}
	m.model.requested(d)
	m.run.Spent.ModelCalls++
	m.gotOn()
	return nil
}

func (m *Machine) applyAttemptFailed(d *event.ModelAttemptFailed) error {
	if d.Purpose == event.PurposeSummary {
		return m.applySummaryFailed(d)
	}
	if !m.model.inFlight {
		return fmt.Errorf("%w: attempt %d failed without being in flight", ErrMisfit, d.Attempt)
	}
	m.spend(d.Usage, d.Cost)
	if d.Class != llm.ClassInterrupted {
		m.model.answered++
	}
	m.model.failed(d)
	if d.Class == llm.ClassContextOverflow {
		m.compaction.tooLong(m.cfg.Compact.Off)
	}
	return nil
}

func (m *Machine) applyRetrying(e *event.Event, d event.ModelRetrying) error {
	if d.Purpose == event.PurposeSummary {
		return m.applySummaryRetrying(e, d)
	}
	if m.model.failure == nil {
		return fmt.Errorf("%w: attempt %d follows no failure", ErrMisfit, d.Attempt)
	}
	m.model.retrying(d, e.Time, m.cfg.Targets)
	m.compaction.overflow = reliefNone
	return nil
}

func (m *Machine) applyResponse(d *event.ModelResponse) error {
	if d.Purpose == event.PurposeSummary {
		return m.applySummary(d)
	}
	if !m.model.inFlight {
		return fmt.Errorf("%w: an answer in cycle %d to no call", ErrMisfit, m.cycle)
	}
	parts := llm.Parts(d.Parts)
	refs := parts.ToolCalls()
	if len(refs) != len(d.ToolCalls) {
		return fmt.Errorf("%w: response of cycle %d names %d calls and holds %d", ErrMisfit, d.Cycle, len(d.ToolCalls), len(refs))
	}
	m.spend(d.Usage, d.Cost)
	m.model.answered++
	m.run.Spent.Turns++
	m.model.inFlight, m.model.orphan = false, false
	m.model.response = d
	if d.FinishReason == llm.FinishContext {
		m.compaction.tooLong(m.cfg.Compact.Off)
	} else {
		m.compaction.fitted(d.Usage, m.messages.history.Len())
	}
	m.messages.history.Assistant(parts, d.Model)
	m.messages.size.answered(d, m.messages.history.Len())
	m.note("text", parts.Text())
	m.turn.answered(d, len(refs), len(m.cfg.Schema) > 0, m.cfg.AllText)
	m.progress.repetition.Answered(parts.Text(), len(refs) > 0)
	m.tookIn(parts)
	if len(refs) == 0 {
		m.phase = phaseSettled
		m.turn.settled(d, 0, d.FinishReason == llm.FinishLength)
		return nil
	}
	m.phase = phaseTools
	m.calls.asked(refs)
	return nil
}
