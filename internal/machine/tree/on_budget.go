package tree

import (
	"strconv"

	"github.com/pawlrun/pawl/event"
)

// OnBudget says what reaching a limit means.
type OnBudget string

// The values of budgets.actions.
const (
	BudgetStop OnBudget = "stop"
	// BudgetOK stops the run, and the caller counts that as well.
	BudgetOK OnBudget = "ok"
	// BudgetAsk parks the run until somebody has raised the limit. Resumed
	// before that it parks again; a cancel ends it.
	BudgetAsk OnBudget = "ask"
)

// KindAbove is the kind of an end by a limit of a run above.
const KindAbove = "parent"

// ParkAt is how a run parks whose owner is to be asked for more. detail says what is
// lacking, and atLeast the value that would do, 0 where that is not known.
func ParkAt(setting, detail string, atLeast float64) event.RunParked {
	raise := "; raise it"
	if atLeast > 0 {
		raise += " to at least " + strconv.FormatFloat(atLeast, 'f', -1, 64)
	}
	return event.RunParked{Reason: event.ParkInput, Limit: setting, Detail: detail + raise + " or cancel the run", AtLeast: atLeast}
}

// asks reports whether reaching a limit parks the run.
func (r *Run) asks(setting string) bool { return r.OnBudget[setting] == BudgetAsk }

// parksAt is a limit on the run's time that is used up and asks to be raised, once
// nothing is under way any more; "" for none.
func (r *Run) parksAt(late string) string {
	if late != "" && r.asks(late) && r.children.parked == len(r.children.open) && r.commands.running == 0 {
		return late
	}
	return ""
}
