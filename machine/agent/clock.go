package agent

import (
	"slices"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
)

// clock counts the time that the run was going. What lies before run.resumed
// was parked, or nobody drove it, and what the clock skipped was a laptop's
// sleep, which must not burn the budget.
func (m *Machine) clock(e *event.Event) {
	resumed := takesUp(e.Data)
	if d := e.Time.Sub(m.last) - time.Duration(e.SkippedMs)*time.Millisecond; d > 0 && !resumed && !m.idle && !m.asking() {
		m.spent.Active += d
		m.spent.Idle += d
	}
	switch e.Data.(type) {
	case event.RunResumed:
		m.idle, m.takenUp = false, e.Time
	case event.RunParked:
		m.idle = true
	}
	m.last = e.Time
}

// takesUp says that nobody drove the run before this event.
func takesUp(d event.Data) bool {
	switch d.(type) {
	case event.RunResumed, event.RunForked:
		return true
	}
	return false
}

// asking says that the run has nothing to do but wait for a person, whose time
// is not the run's.
func (m *Machine) asking() bool { return m.standing.total.busy == 0 && m.standing.total.waiting > 0 }

// awaitsInChild says that the run waits for a person, and a child of it does.
func (m *Machine) awaitsInChild() bool {
	return m.asking() && slices.ContainsFunc(m.unsettled(), (*call).childWaits)
}

// outOfTime is the limit on time that is used up, or "".
func (m *Machine) outOfTime() string { return m.cfg.Limits.OutOfTime(m.spent) }

// tooLateToWait refuses a wait that a limit on time has no room for.
func tooLateToWait(setting string, wait time.Duration) budget.Refusal {
	return budget.Refusal{
		Setting: setting, After: wait, Because: "the wait before the next attempt would last longer than the time that is left",
	}
}

// outlasts names the limit on time that is used up before a wait is over, as
// when somebody has lowered it meanwhile, or "".
func (m *Machine) outlasts(wait time.Time) (setting string) {
	if end := m.deadline(); end.Setting != "" && !wait.IsZero() && !wait.Before(end.At) {
		return end.Setting
	}
	return ""
}

// noTimeFor names the limit on time that has no room for a delay, or "".
func (m *Machine) noTimeFor(delay time.Duration) (setting string) {
	if left, setting := m.cfg.Limits.Remaining(m.spent); setting != "" && delay >= left {
		return setting
	}
	return ""
}

// deadline is when a limit on time is used up if the run goes on from here and
// nothing new comes of it. What is to be heard at its end is not bounded, nor is
// a child while it and the run wait for a person.
func (m *Machine) deadline() machine.Deadline {
	left, setting := m.cfg.Limits.Remaining(m.spent)
	if setting == "" || m.phase >= phaseEnding || m.awaitsInChild() {
		return machine.Deadline{}
	}
	return machine.Deadline{At: m.last.Add(max(left, 0)), Setting: setting, Asks: m.asksAt(setting)}
}
