package agent

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/tree"
)

// setAside records a reservation that the run's own share has room for. In a
// run that another one started it asks for it above, when the call's time has
// come: what the run above has left bounds this one, whatever its own limits say.
func (m *Machine) setAside(id string, c budget.Call, a budget.Amount, notBefore time.Time) machine.Action {
	if m.run.Parent == "" {
		return record(event.BudgetReserved{ID: id, USD: a.USD, Input: a.Input, Output: a.Output})
	}
	c.Output = a.Output
	return machine.Reserve{ID: m.account.drawID(id), Call: c, NotBefore: notBefore}
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
func (m *Machine) exhaustedAbove(r *event.BudgetRefused) machine.Action {
	above := cmp.Or(r.Run, m.run.Parent)
	detail := sentence("the budget of run "+m.run.Parent+", which started this one, has no room", r.Detail)
	if above != m.run.Parent {
		detail = sentence("the budget of run "+above+", above this one, has no room", r.Detail)
	}
	switch {
	case r.Ask:
		return record(event.RunParked{
			Reason: event.ParkInput, ParentLimit: r.Setting, LimitRun: r.Run, AtLeast: r.AtLeast, Detail: sentence(r.Setting, detail) + "; raise it there and resume that run",
		})
	case m.cfg.conditionOn(r.Setting):
		return m.conditionMet(m.cfg.conditionBudget())
	}
	return m.terminate(event.RunTerminatedBy{Reason: event.BudgetReason(r.Setting), Limit: r.Setting, Kind: tree.KindAbove, LimitRun: r.Run, Detail: detail})
}

// Admit sets the call of a run that this one started against what is left
// here; see [machine.Funder].
func (m *Machine) Admit(c budget.Call, asked budget.Amount) machine.Grant {
	return m.run.Admit(c, m.cfg.Limits, asked, m.cfg.asksAt)
}

// Drawn are the reservations of a child that are open.
func (m *Machine) Drawn(child string) []event.BudgetReserved { return m.run.Drawn(child) }

func (m *Machine) applyRefused(d event.BudgetRefused) error {
	if m.run.Parent == "" || m.account.id != "" {
		return fmt.Errorf("%w: a refusal of reservation %s, which was not asked for", ErrMisfit, d.ID)
	}
	m.account.refused = &d
	return nil
}
