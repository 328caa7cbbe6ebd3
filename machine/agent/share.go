package agent

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
)

// kindAbove is the kind of an end by a limit of the run above.
const kindAbove = "parent"

// share is the run's own part in the budget that it draws from.
func (m *Machine) share() budget.Share {
	return budget.Share{Limits: m.cfg.Limits, Spent: m.spent, Held: m.account.ledger.Held()}
}

// setAside records a reservation that the run's own share has room for. In a
// run that another one started it asks for it above, when the call's time has
// come: what the run above has left bounds this one, whatever its own limits say
// (FIELD F3).
func (m *Machine) setAside(id string, c budget.Call, a budget.Amount, notBefore time.Time) {
	if m.parent == "" {
		m.record(event.BudgetReserved{ID: id, USD: a.USD, Input: a.Input, Output: a.Output})
		return
	}
	c.Output = a.Output
	m.actions = append(m.actions, machine.Reserve{ID: m.drawID(id), Call: c, NotBefore: notBefore})
}

// drawID is an id that no other reservation of the run has, so that the run
// above can tell after a crash which of them was used.
func (m *Machine) drawID(id string) string { return id + "/" + strconv.Itoa(m.account.draws+1) }

// declined is the refusal of the run above for a reservation, nil while there
// is none.
func (m *Machine) declined(id string) *event.BudgetRefused {
	if r := m.account.refused; r != nil && r.ID == m.drawID(id) {
		return r
	}
	return nil
}

// exhaustedAbove ends the run at a limit of the run above, or parks it where
// the owner of that limit wants to be asked: the run above parks with it.
func (m *Machine) exhaustedAbove(r *event.BudgetRefused) {
	detail := sentence("the budget of run "+m.parent+", which started this one, has no room", r.Detail)
	switch {
	case r.Ask:
		m.record(event.RunParked{
			Reason: event.ParkInput, ParentLimit: r.Setting, AtLeast: r.AtLeast, Detail: sentence(r.Setting, detail) + "; raise it there and resume that run",
		})
	case m.conditionOn(r.Setting):
		m.conditionMet(m.cfg.conditionBudget())
	default:
		m.terminate(event.RunTerminatedBy{Reason: event.BudgetReason(r.Setting), Limit: r.Setting, Kind: kindAbove, Detail: detail})
	}
}

// giveBack returns what is set aside for a call that is not made yet, before
// the run parks for who knows how long: its siblings may wait for it.
func (m *Machine) giveBack() bool {
	if m.parent == "" || m.account.id == "" {
		return false
	}
	m.record(event.BudgetCommitted{ID: m.account.id})
	return true
}

// Admit sets the call of a run that this one started against what is left
// here; see [machine.Funder].
func (m *Machine) Admit(c budget.Call) machine.Grant {
	share := m.share().Below()
	a, refusal := budget.Line{share}.Admit(c)
	if s := m.account.overrun; s != "" {
		a, refusal = budget.Amount{}, budget.Refusal{Setting: s, Because: "a call went beyond " + s + ", and nothing starts any more"}
	}
	g := machine.Grant{Amount: a, Refusal: refusal}
	if refusal.Setting != "" && !refusal.Wait && m.asksAt(refusal.Setting) {
		refusal.Call = c
		g.Ask, g.AtLeast = true, share.Limits.AtLeast(refusal, share.Spent)
	}
	return g
}

// Drawn are the reservations of a child that are open.
func (m *Machine) Drawn(child string) []event.BudgetReserved {
	return slices.Clone(m.account.drawn[child])
}

// drawKey is the id of a child's reservation in this run's ledger.
func drawKey(child, id string) string { return child + "/" + id }

func (m *Machine) applyDrawn(d event.BudgetReserved) error {
	ledger, err := m.account.ledger.Reserve(budget.Reservation{
		ID: drawKey(d.Run, d.ID), Amount: budget.Amount{USD: d.USD, Input: d.Input, Output: d.Output},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMisfit, err)
	}
	if m.account.drawn == nil {
		m.account.drawn = map[string][]event.BudgetReserved{}
	}
	m.account.ledger, m.account.drawn[d.Run] = ledger, append(m.account.drawn[d.Run], d)
	return nil
}

// applyUsed counts what a child's call used: the run's sums are those of its
// whole tree, so that its warnings, its overrun and its end follow from all of
// it.
func (m *Machine) applyUsed(d event.BudgetCommitted) error {
	key := drawKey(d.Run, d.ID)
	used := budget.Amount{USD: d.USD, Input: d.Input, Output: d.Output}
	reserved, _ := m.account.ledger.Reserved(key)
	ledger, err := m.account.ledger.Commit(key, used)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMisfit, err)
	}
	a := &m.account
	a.ledger = ledger
	a.drawn[d.Run] = slices.DeleteFunc(a.drawn[d.Run], func(r event.BudgetReserved) bool { return r.ID == d.ID })
	if len(a.drawn[d.Run]) == 0 {
		delete(a.drawn, d.Run)
	}
	if d.Usage != nil {
		m.sum(*d.Usage, costOfUse(d))
		m.progress()
		a.exceeded = a.exceeded || used.Exceeds(reserved)
	}
	return nil
}

func (m *Machine) applyRefused(d event.BudgetRefused) error {
	if m.parent == "" || m.account.id != "" {
		return fmt.Errorf("%w: a refusal of reservation %s, which was not asked for", ErrMisfit, d.ID)
	}
	m.account.refused = &d
	return nil
}
