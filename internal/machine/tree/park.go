package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
)

// Parked is a child that waits for a person, with the id that its run gave it.
type Parked struct {
	Name string
	*event.ChildParked
}

// limit identifies a limit that a child waits for, and the run that has it.
type limit struct{ run, setting string }

// Park returns the event that parks a run that only waits for these children.
func Park(run string, children []Parked) event.RunParked {
	var parked event.RunParked
	var details []string
	var at limit
	var needs []float64
	for _, c := range children {
		parked.Reason = weightier(parked.Reason, c.Reason)
		parked.Until = Sooner(parked.Until, c.Until)
		if of := (limit{run: cmp.Or(c.LimitRun, run), setting: c.ParentLimit}); c.ParentLimit != "" && (at == of || at.setting == "") {
			at, needs = of, append(needs, c.AtLeast)
		}
		details = append(details, waitsFor(c.Name, c.ChildParked))
	}
	if parked.Reason == event.ParkInput && at.setting != "" {
		parked.AtLeast = slices.Min(needs) // enough for one of them to continue
		if at.run == run {
			parked.Limit = at.setting
		} else {
			parked.ParentLimit, parked.LimitRun = at.setting, at.run
		}
	}
	parked.Detail = strings.Join(details, "; ")
	return parked
}

// weightier returns the reason that requires more from a person.
func weightier(a, b event.ParkReason) event.ParkReason {
	for _, r := range []event.ParkReason{event.ParkApproval, event.ParkInput, event.ParkPaused, event.ParkInterrupted} {
		if a == r || b == r {
			return r
		}
	}
	return b
}

// Sooner returns the earlier of two times; nil is never.
func Sooner(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

// waitsFor describes what a child waits for and which run a person has to act on.
func waitsFor(name string, d *event.ChildParked) string {
	switch {
	case len(d.CallIDs) > 0:
		return fmt.Sprintf("%s (run %s) waits for a decision on %s; decide, then resume this run", name, d.Child, strings.Join(d.CallIDs, ", "))
	case d.Detail != "":
		return fmt.Sprintf("%s (run %s) is parked as %s: %s", name, d.Child, d.Reason, d.Detail)
	}
	return fmt.Sprintf("%s (run %s) is parked as %s", name, d.Child, d.Reason)
}

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
