package agent

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
)

// Next returns what is due. The order of its checks is the order of a cycle.
func (m *Machine) Next() []machine.Action {
	m.actions = m.actions[:0]
	if m.run.Parked != nil {
		return nil
	}
	if m.nextSettlement() || m.summarising() || m.afterCompaction() {
		return m.actions
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
		if h := m.hooks.after.due; h != nil {
			outcome := m.conclude()
			m.runHook(h, func(a *machine.RunHook) { a.Outcome = &outcome })
			break
		}
		m.record(event.RunCompleted{Outcome: m.conclude()})
	}
	return m.actions
}

func (m *Machine) record(d event.Data) { m.actions = append(m.actions, machine.Record{Data: d}) }

// terminate records why the run ends; the outcome follows from it. What was set
// aside for a call that will not be made is given back first.
func (m *Machine) terminate(d event.RunTerminatedBy) {
	if m.account.id != "" {
		m.record(event.BudgetCommitted{ID: m.account.id})
		return
	}
	m.record(d)
}

func (m *Machine) cancelled() {
	m.terminate(event.RunTerminatedBy{Reason: event.ReasonCancelled, Detail: m.run.Cancel.Reason})
}

func (m *Machine) internal(err error) {
	m.terminate(event.RunTerminatedBy{
		Reason: event.ReasonInternal, Error: &event.Failure{Class: "internal", Message: err.Error()},
	})
}

// nextCycle opens a cycle, unless something stands against it: a cancel first
// (ALF-8), then a pause, then the limits (ALDO-13, HAR-22).
func (m *Machine) nextCycle() {
	switch {
	case m.run.Cancel != nil:
		m.cancelled()
	case m.pause && m.giveBack():
	case m.pause:
		m.record(event.RunParked{Reason: event.ParkPaused})
	case m.cycle == 0 && len(m.messages.unread) == 0 && !m.messages.history.AwaitsAnswer():
		m.record(event.RunParked{Reason: event.ParkInput, Detail: "the run has no task yet"})
	case m.hooks.before.refusal != nil:
		m.refuseRun()
	case m.hooks.before.due != nil:
		m.runHook(m.hooks.before.due, func(*machine.RunHook) {})
	case m.warn(budget.OfCycles):
	case m.atCeiling():
		m.terminate(event.RunTerminatedBy{Reason: event.ReasonMaxCycles, Limit: budget.CycleCap})
	default:
		refusal := m.refused(m.target())
		switch {
		case curedByCompaction(refusal) && m.nextCompaction():
		case refusal.Setting != "":
			m.exhausted(refusal)
		case m.account.id != "":
			// What was set aside for a summary that was not made.
			m.record(event.BudgetCommitted{ID: m.account.id})
		default:
			m.record(event.CycleStart{Cycle: m.cycle + 1, MaxCycles: m.cfg.Limits.MaxCycles})
		}
	}
}

// curedByCompaction reports whether nothing stands against another call, or nothing
// that a shorter conversation would not put right.
func curedByCompaction(r budget.Refusal) bool {
	return r.Setting == "" || r.Setting == budget.RequestTokens
}

func (m *Machine) atCeiling() bool {
	return m.cfg.Limits.MaxCycles > 0 && m.cycle >= m.cfg.Limits.MaxCycles
}

func (m *Machine) conditionMet(i int) {
	met := m.cfg.Conditions[i]
	d := event.RunTerminatedBy{Reason: event.ReasonConditionMet, Index: &i, Kind: string(met.Kind)}
	if met.Kind.OfMoney() {
		_, d.Limit = m.cfg.Limits.CostCap()
	} else if r := met.Evidence(m.cycleView()); r != nil {
		d.CallID = r.CallID
	}
	m.terminate(d)
}

// nextAttempt asks for a model call, or decides about the one that failed.
func (m *Machine) nextAttempt() {
	switch {
	case m.model.orphan:
		m.record(event.ModelAttemptFailed{
			Attempt: m.model.number, Model: m.target().Model, Class: llm.ClassInterrupted,
			Message: "the process stopped while the call was in flight",
			Usage:   m.unreported(), Cost: m.costOf(m.unreported()),
		})
	case m.model.inFlight:
	case m.run.Cancel != nil:
		m.cancelled()
	case m.model.failure != nil:
		m.nextRetry(m.model.failure)
	case m.pause && m.giveBack():
	case m.pause:
		m.record(event.RunParked{Reason: event.ParkPaused})
	case m.outlasts(m.model.notBefore) != "":
		m.exhausted(tooLateToWait(m.outlasts(m.model.notBefore), 0))
	case m.account.id == "":
		m.reserve()
	default:
		m.callModel()
	}
}

// Model is the one that the run stands on: the first of its chain, or the fallback
// that took over.
func (m *Machine) Model() string { return m.target().Model }

func (m *Machine) target() Target { return m.cfg.Targets[m.model.target] }

func (m *Machine) callModel() {
	messages, err := m.messages.history.Messages()
	if err != nil {
		m.internal(err)
		return
	}
	t := m.target()
	hosted, withheld := m.providerTools()
	m.actions = append(m.actions, machine.CallModel{
		Cycle: m.cycle, Attempt: m.model.number, Target: t.Model, Price: t.Price,
		Request: llm.Request{
			System: m.messages.system, Messages: messages, Tools: m.offered(),
			MaxTokens: m.account.maxTokens, Temperature: m.cfg.Temperature, Schema: m.cfg.Schema, SchemaInPrompt: t.NoSchema,
			ProviderTools: hosted, CacheKey: m.messages.workload, Cache: m.cfg.Cache, Ordinal: m.model.answered,
		},
		Stream: !m.cfg.NoStream, NotBefore: m.model.notBefore,
		Admission: m.run.Ledger.Admission(m.account.id), Withheld: withheld,
	})
}

// nextRetry decides about a failed attempt. A budget that is used up, or that
// would be before the wait is over, comes first.
func (m *Machine) nextRetry(f *event.ModelAttemptFailed) {
	if m.nextRelief() {
		return
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
		m.exhausted(refusal)
	case v.retry:
		m.record(event.ModelRetrying{
			Attempt: f.Attempt + 1, DelayMs: v.delay.Milliseconds(),
			Reason:    sentence(string(f.Class), f.Message),
			FromModel: f.Model, ToModel: m.cfg.Targets[v.target].Model,
		})
	case v.park:
		until := m.run.Now.Add(v.delay)
		m.record(event.RunParked{
			Reason: event.ParkPaused, Until: &until,
			Detail: fmt.Sprintf("%s asks for a wait of %s, longer than a run waits by itself", f.Model, v.delay.Round(time.Second)),
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
