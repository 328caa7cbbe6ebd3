package tree

import (
	"strconv"

	"github.com/pawlrun/pawl/event"
)

// OnBudget is the action when a limit is reached.
type OnBudget string

// The values of budgets.actions.
const (
	BudgetStop OnBudget = "stop"
	// BudgetOK stops the run, and the caller treats that as success.
	BudgetOK OnBudget = "ok"
	// BudgetAsk parks the run until the limit is raised. A run that resumes before that
	// parks again. A cancel ends it.
	BudgetAsk OnBudget = "ask"
)

// KindAbove is the kind of an end that a limit of a run above causes.
const KindAbove = "parent"

// ParkAt returns the event that parks a run so that its owner can raise a limit. detail
// describes what is lacking. atLeast is the lowest value that would help, 0 if unknown.
func ParkAt(setting, detail string, atLeast float64) event.RunParked {
	raise := "; raise it"
	if atLeast > 0 {
		raise += " to at least " + strconv.FormatFloat(atLeast, 'f', -1, 64)
	}
	return event.RunParked{Reason: event.ParkInput, Limit: setting, Detail: detail + raise + " or cancel the run", AtLeast: atLeast}
}

// asks reports whether a limit parks the run.
func (r *Run) asks(setting string) bool { return r.OnBudget[setting] == BudgetAsk }

// parksAt returns the time limit that is reached and parks the run. It returns "" if
// there is none or while an effect is under way.
func (r *Run) parksAt(late string) string {
	if late != "" && r.asks(late) && r.children.parked == len(r.children.open) && r.commands.running == 0 {
		return late
	}
	return ""
}
