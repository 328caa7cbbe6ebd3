package agent

import (
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/machine"
)

// outOfTime is the limit on time that is used up, or "".
func (r *run) outOfTime() string { return r.cfg.Limits.OutOfTime(r.Spent) }

// tooLateToWait refuses a wait that a limit on time has no room for.
func tooLateToWait(setting string, wait time.Duration) budget.Refusal {
	return budget.Refusal{
		Setting: setting, After: wait, Because: "the wait before the next attempt is longer than the remaining time",
	}
}

// outlasts names the limit on time that is used up before a wait is over, as
// when somebody has lowered it meanwhile, or "".
func (r *run) outlasts(wait time.Time) (setting string) {
	if end := r.deadline(); end.Setting != "" && !wait.IsZero() && !wait.Before(end.At) {
		return end.Setting
	}
	return ""
}

// noTimeFor names the limit on time that has no room for a delay, or "".
func (r *run) noTimeFor(delay time.Duration) (setting string) {
	if left, setting := r.cfg.Limits.Remaining(r.Spent); setting != "" && delay >= left {
		return setting
	}
	return ""
}

// deadline is as in [tree.Base.Deadline].
func (r *run) deadline() machine.Deadline {
	d := r.Deadline(r.cfg.Limits)
	d.Asks = d.Setting != "" && r.cfg.asksAt(d.Setting)
	return d
}
