package agent

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
)

// setAside records a reservation that the run's own share has room for. In a
// run that another one started it asks for it above, when the call's time has
// come: what the run above has left bounds this one, whatever its own limits say.
func (a *account) setAside(r *run, id string, c budget.Call, most budget.Amount, notBefore time.Time) machine.Action {
	if r.Parent == "" {
		return record(event.BudgetReserved{ID: id, USD: most.USD, Input: most.Input, Output: most.Output})
	}
	c.Output = most.Output
	return machine.Reserve{ID: a.drawID(id), Call: c, NotBefore: notBefore}
}

// drawID is an id that no other reservation of the run has, so that the run
// above can tell after a crash which of them was used.
func (a *account) drawID(id string) string { return id + "/" + strconv.Itoa(a.draws+1) }

// declined is the refusal of the run above for a reservation, nil while there
// is none.
func (a *account) declined(id string) *event.BudgetRefused {
	if r := a.refused; r != nil && r.ID == a.drawID(id) {
		return r
	}
	return nil
}

// exhaustedAbove ends the run at a limit of the run above, or parks it where
// the owner of that limit wants to be asked: the run above parks with it.
func (r *run) exhaustedAbove(d *event.BudgetRefused) machine.Action {
	above := cmp.Or(d.Run, r.Parent)
	detail := sentence("the budget of run "+r.Parent+", which started this one, has no room", d.Detail)
	if above != r.Parent {
		detail = sentence("the budget of run "+above+", above this one, has no room", d.Detail)
	}
	switch {
	case d.Ask:
		return record(event.RunParked{
			Reason: event.ParkInput, ParentLimit: d.Setting, LimitRun: d.Run, AtLeast: d.AtLeast, Detail: sentence(d.Setting, detail) + "; raise it there and resume that run",
		})
	case r.cfg.conditionOn(d.Setting):
		return record(r.cfg.met(r.cfg.conditionBudget()))
	}
	return record(event.RunTerminatedBy{Reason: event.BudgetReason(d.Setting), Limit: d.Setting, Kind: tree.KindAbove, LimitRun: d.Run, Detail: detail})
}

func (a *account) applyRefused(r *run, d event.BudgetRefused) error {
	if r.Parent == "" || a.id != "" {
		return fmt.Errorf("%w: a refusal of reservation %s, which was not asked for", ErrMisfit, d.ID)
	}
	a.refused = &d
	return nil
}
