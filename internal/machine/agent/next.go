package agent

import (
	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

// Next returns what is due. All actions but those about the calls of an answer come
// one by one.
func (m *Machine) Next() []machine.Action {
	if m.run.Parked != nil {
		return nil
	}
	var due actions
	switch a := m.nextAnyway(); {
	case a != nil:
		due.add(a)
	case m.compaction.summary.call.inFlight:
	case m.run.phase == phaseTools:
		m.nextCalls(&due)
	default:
		due.add(m.account.beforeEnd(m.nextOf(m.run.phase)))
	}
	return due
}

// nextAnyway is what comes first in every phase.
func (m *Machine) nextAnyway() machine.Action {
	r := &m.run
	return first(
		func() machine.Action { return m.account.settlement(r) },
		func() machine.Action {
			return m.account.lost(r, &m.compaction.summary.call, m.target(), event.PurposeSummary)
		},
		func() machine.Action { return m.compaction.hooks.nextAfter(r) },
	)
}

// nextOf is the table of the phases: what each of them may lead to, in the order in
// which it is looked at. Of an answer with calls see [Machine.nextCalls].
func (m *Machine) nextOf(p phase) machine.Action {
	r := &m.run
	switch p {
	case phaseReady:
		return m.nextCycle()
	case phaseModel:
		return m.nextAttempt()
	case phaseSettled:
		// An answer that the provider itself calls void meets no condition. Conditions
		// come before limits, so that one met in the last allowed cycle wins over the
		// ceiling (ALDO-16).
		return first(
			r.cancelled,
			m.endedByVoid,
			func() machine.Action { return m.calls.endedByCondition(r, m.model.response) },
			m.endedByTool,
			func() machine.Action { return m.calls.endedByRefusal(&r.cfg) },
			func() machine.Action { return m.calls.endedByExpiry(&r.cfg) },
			func() machine.Action { return m.progress.failureCounts.endedByFailures(&r.cfg, m.calls.list) },
			m.turn.endedByRepetition,
			func() machine.Action { return m.account.exhausted(r, budget.Refusal{Setting: m.calls.stopBudget}) },
			m.nextStuck,
			m.withheld,
			m.goOn,
			m.withoutCalls,
		)
	case phaseEnding:
		outcome := r.outcome(&m.turn, &m.calls, len(m.messages.unread))
		if a := m.hooks.nextAfter(r, &outcome); a != nil {
			return a
		}
		return record(event.RunCompleted{Outcome: outcome})
	}
	return nil
}

// nextCycle opens a cycle, unless something stands against it: a cancel first
// (ALF-8), then a pause, then the limits (ALDO-13, HAR-22).
func (m *Machine) nextCycle() machine.Action {
	r := &m.run
	return first(
		r.cancelled,
		func() machine.Action { return m.account.paused(r) },
		func() machine.Action { return m.messages.withoutTask(r.cycle) },
		m.hooks.refused,
		func() machine.Action { return m.hooks.nextBefore(r) },
		func() machine.Action { return m.account.warn(r, budget.OfCycles) },
		r.outOfCycles,
		m.openCycle,
	)
}

// openCycle begins a cycle where there is room for its call, which a shorter
// conversation may make.
func (m *Machine) openCycle() machine.Action {
	refusal := m.refused(m.target())
	if curedByCompaction(refusal) {
		if a := m.nextCompaction(); a != nil {
			return a
		}
	}
	switch {
	case refusal.Setting != "":
		return m.account.exhausted(&m.run, refusal)
	case m.account.id != "": // for a summary that was not made
		return m.account.giveBack()
	}
	return record(event.CycleStart{Cycle: m.run.cycle + 1, MaxCycles: m.run.cfg.Limits.MaxCycles})
}

// nextAttempt asks for a model call, or decides about the one that failed.
func (m *Machine) nextAttempt() machine.Action {
	if m.model.inFlight && !m.model.orphan {
		return nil
	}
	r := &m.run
	return first(
		func() machine.Action { return m.account.lost(r, &m.model.attempt, m.target(), "") },
		r.cancelled,
		m.nextRetry,
		func() machine.Action { return m.account.paused(r) },
		func() machine.Action { return m.account.exhausted(r, tooLateToWait(r.outlasts(m.model.notBefore), 0)) },
		m.reserve,
		m.callModel,
	)
}

// goOn begins the next cycle where the results of calls, a paused answer or a message
// are to be answered.
func (m *Machine) goOn() machine.Action {
	if len(m.calls.list) > 0 || m.model.response.FinishReason == llm.FinishPause || len(m.messages.unread) > 0 && m.hasRoom() {
		return m.nextCycle()
	}
	return nil
}

// hasRoom reports whether no limit stands against another cycle. Without room, an
// answer is judged for itself, whatever message came with it.
func (m *Machine) hasRoom() bool {
	return !m.run.atCeiling() && m.refused(m.target()) == (budget.Refusal{})
}

// withheld tells the model what it has to go on without, if it would go on with that.
func (m *Machine) withheld() machine.Action {
	if w := m.model.brokenOff(&m.run, &m.permissions, len(m.calls.list)); w != nil {
		return m.nudge(event.NudgeWithheld, withheldNudge(w))
	}
	return nil
}
