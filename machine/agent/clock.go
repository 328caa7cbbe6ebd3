package agent

import (
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/machine"
)

// outOfTime is the limit on time that is used up, or "".
func (m *Machine) outOfTime() string { return m.cfg.Limits.OutOfTime(m.run.Spent) }

// tooLateToWait refuses a wait that a limit on time has no room for.
func tooLateToWait(setting string, wait time.Duration) budget.Refusal {
	return budget.Refusal{
		Setting: setting, After: wait, Because: "the wait before the next attempt is longer than the remaining time",
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
	if left, setting := m.cfg.Limits.Remaining(m.run.Spent); setting != "" && delay >= left {
		return setting
	}
	return ""
}

// deadline is as in [tree.Base.Deadline]. A child is not bounded while it and the
// run wait for a person.
func (m *Machine) deadline() machine.Deadline {
	d := m.run.Deadline(m.cfg.Limits)
	if d.Setting == "" || m.calls.askingBelow() {
		return machine.Deadline{}
	}
	d.Asks = m.cfg.asksAt(d.Setting)
	return d
}
