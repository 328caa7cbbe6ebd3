package agent

import (
	"slices"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
)

// step is what a run may have to do next: an action, or nil where it has not. A step
// changes nothing; what follows from its action comes back as an event.
type step func(*Machine) machine.Action

// first is the action of the first step that has one, nil where none has.
func (m *Machine) first(steps ...step) machine.Action {
	for _, s := range steps {
		if a := s(m); a != nil {
			return a
		}
	}
	return nil
}

// Next returns what is due. All actions but those about the calls of an answer come
// one by one.
func (m *Machine) Next() []machine.Action {
	m.actions = m.actions[:0]
	if m.run.Parked != nil {
		return nil
	}
	switch a := m.first((*Machine).settlement, (*Machine).lostSummary, (*Machine).hookAfterCompaction); {
	case a != nil:
		m.add(a)
	case m.compaction.summary.call.inFlight:
	case m.phase == phaseTools:
		m.nextCalls()
	default:
		m.add(m.nextOf(m.phase))
	}
	return m.actions
}

// nextOf is the table of the phases: what each of them may lead to, in the order in
// which it is looked at. Of an answer with calls see [Machine.nextCalls].
func (m *Machine) nextOf(p phase) machine.Action {
	switch p {
	case phaseReady:
		return m.nextCycle()
	case phaseModel:
		return m.nextAttempt()
	case phaseSettled:
		// An answer that the provider itself calls void meets no condition. Conditions
		// come before limits, so that one met in the last allowed cycle wins over the
		// ceiling (ALDO-16).
		return m.first(
			(*Machine).cancelled,
			(*Machine).endedByVoid,
			(*Machine).endedByCondition,
			(*Machine).endedByTool,
			(*Machine).endedByRefusal,
			(*Machine).endedByExpiry,
			(*Machine).endedByFailures,
			(*Machine).endedByRepetition,
			(*Machine).outOfBudget,
			(*Machine).nextStuck,
			(*Machine).withheld,
			(*Machine).goOn,
			(*Machine).withoutCalls,
		)
	case phaseEnding:
		return m.first((*Machine).hookAfterRun, (*Machine).completed)
	}
	return nil
}

// nextCycle opens a cycle, unless something stands against it: a cancel first
// (ALF-8), then a pause, then the limits (ALDO-13, HAR-22).
func (m *Machine) nextCycle() machine.Action {
	return m.first(
		(*Machine).cancelled,
		(*Machine).paused,
		(*Machine).withoutTask,
		(*Machine).refusedByHook,
		(*Machine).hookBeforeRun,
		(*Machine).warnOfCycles,
		(*Machine).outOfCycles,
		(*Machine).openCycle,
	)
}

// nextAttempt asks for a model call, or decides about the one that failed.
func (m *Machine) nextAttempt() machine.Action {
	if m.model.inFlight && !m.model.orphan {
		return nil
	}
	return m.first(
		(*Machine).lostAttempt,
		(*Machine).cancelled,
		(*Machine).nextRetry,
		(*Machine).paused,
		(*Machine).waitsTooLong,
		(*Machine).reserve,
		(*Machine).callModel,
	)
}

func record(d event.Data) machine.Action { return machine.Record{Data: d} }

// several are the actions of one step, which are due at once.
type several struct {
	machine.Action
	all []machine.Action
}

// together makes one of those actions that are not nil.
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

// add takes an action into those that are due.
func (m *Machine) add(a machine.Action) {
	switch a := a.(type) {
	case nil:
	case several:
		for _, one := range a.all {
			m.add(one)
		}
	default:
		m.actions = append(m.actions, a)
	}
}

// terminate records why the run ends; the outcome follows from it. What was set
// aside for a call that will not be made is given back first.
func (m *Machine) terminate(d event.RunTerminatedBy) machine.Action {
	if m.account.id != "" {
		return m.account.giveBack()
	}
	return record(d)
}

// giveBack returns what is set aside for a call that is not made.
func (a *account) giveBack() machine.Action { return record(event.BudgetCommitted{ID: a.id}) }

func (m *Machine) cancelled() machine.Action {
	if m.run.Cancel == nil {
		return nil
	}
	return m.terminate(event.RunTerminatedBy{Reason: event.ReasonCancelled, Detail: m.run.Cancel.Reason})
}

// paused parks the run where somebody wants that. A run that another one started
// gives back first what it has set aside: its siblings may wait for it, for who
// knows how long.
func (m *Machine) paused() machine.Action {
	switch {
	case !m.pause:
		return nil
	case m.run.Parent != "" && m.account.id != "":
		return m.account.giveBack()
	}
	return record(event.RunParked{Reason: event.ParkPaused})
}

func (m *Machine) internal(err error) machine.Action {
	return m.fail(event.ReasonInternal, "internal", err.Error())
}

func (m *Machine) fail(reason event.Reason, class, message string) machine.Action {
	return m.terminate(event.RunTerminatedBy{Reason: reason, Error: &event.Failure{Class: class, Message: message}})
}

func (m *Machine) withoutTask() machine.Action {
	if m.cycle > 0 || len(m.messages.unread) > 0 || m.messages.history.AwaitsAnswer() {
		return nil
	}
	return record(event.RunParked{Reason: event.ParkInput, Detail: "the run has no task yet"})
}

func (m *Machine) warnOfCycles() machine.Action { return m.warn(budget.OfCycles) }

func (m *Machine) outOfCycles() machine.Action {
	if !m.atCeiling() {
		return nil
	}
	return m.terminate(event.RunTerminatedBy{Reason: event.ReasonMaxCycles, Limit: budget.CycleCap})
}

func (m *Machine) atCeiling() bool {
	return m.cfg.Limits.MaxCycles > 0 && m.cycle >= m.cfg.Limits.MaxCycles
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
		return m.exhausted(refusal)
	case m.account.id != "": // for a summary that was not made
		return m.account.giveBack()
	}
	return record(event.CycleStart{Cycle: m.cycle + 1, MaxCycles: m.cfg.Limits.MaxCycles})
}

// curedByCompaction reports whether nothing stands against another call, or nothing
// that a shorter conversation would not put right.
func curedByCompaction(r budget.Refusal) bool {
	return r.Setting == "" || r.Setting == budget.RequestTokens
}

// completed ends the run, with the outcome that follows from why it ends.
func (m *Machine) completed() machine.Action {
	return record(event.RunCompleted{Outcome: m.conclude()})
}
