// Package tree contains the state that machines with child runs share: the clock and
// the account, the state of the children, and how a run parks for them and ends. The
// package is pure, like the machines.
package tree

import (
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

// Account tracks what a run and its children have used and reserved.
type Account struct {
	Ledger budget.Ledger
	Spent  budget.Spent
	Costs  budget.Tracker
	// Overrun is the limit that a call exceeded, or empty. After an overrun nothing
	// starts.
	Overrun string
	drawn   map[string][]event.BudgetReserved
}

// Drawn returns the open reservations of a child.
func (a *Account) Drawn(child string) []event.BudgetReserved { return slices.Clone(a.drawn[child]) }

// ReservationID returns the id of a reservation in a run's account: the reservation's
// own id if child is empty, and otherwise one that includes the child's.
func ReservationID(child, id string) string {
	if child == "" {
		return id
	}
	return child + "/" + id
}

// Reserve records a reservation of the run or of a child.
func (a *Account) Reserve(d event.BudgetReserved) error {
	if err := a.Ledger.Reserve(budget.Reservation{
		ID: ReservationID(d.Run, d.ID), Amount: budget.Amount{USD: d.USD, Input: d.Input, Output: d.Output},
	}); err != nil {
		return fmt.Errorf("%w: %w", ErrMisfit, err)
	}
	if d.Run == "" {
		return nil
	}
	if a.drawn == nil {
		a.drawn = map[string][]event.BudgetReserved{}
	}
	a.drawn[d.Run] = append(a.drawn[d.Run], d)
	return nil
}

// Commit replaces a reservation by the usage of the call. For a child's call it also
// adds the usage to the run's totals, which are those of its whole tree, and reports
// whether the usage exceeded the reservation. The run's own usage was added with the
// answer.
func (a *Account) Commit(d event.BudgetCommitted, l budget.Limits) (exceeded bool, err error) {
	used := budget.Amount{USD: d.USD, Input: d.Input, Output: d.Output}
	reserved, _ := a.Ledger.Reserved(ReservationID(d.Run, d.ID))
	if err := a.Ledger.Commit(ReservationID(d.Run, d.ID)); err != nil {
		return false, fmt.Errorf("%w: %w", ErrMisfit, err)
	}
	if d.Run == "" {
		return false, nil
	}
	a.drawn[d.Run] = slices.DeleteFunc(a.drawn[d.Run], func(r event.BudgetReserved) bool { return r.ID == d.ID })
	if len(a.drawn[d.Run]) == 0 {
		delete(a.drawn, d.Run)
	}
	if d.Usage == nil {
		return false, nil
	}
	a.Use(*d.Usage, llm.Cost{USD: d.USD, Priced: d.Priced})
	a.Progress(l)
	return used.Exceeds(reserved), nil
}

// Use adds a call's usage to the totals.
func (a *Account) Use(u llm.Usage, c llm.Cost) {
	a.Costs = a.Costs.Add(u, c)
	a.Spent.Input += u.Input
	a.Spent.Output += u.Output
	a.Spent.USD = a.Costs.Cost().USD
}

// Progress resets the time without progress, unless that limit was already reached: a
// consequence of reaching it, such as the end of an interrupted call, is not progress.
// An answer in a child counts as progress of its parent; the child has a limit of its
// own.
func (a *Account) Progress(l budget.Limits) {
	if !l.Stalled(a.Spent) {
		a.Spent.Idle = 0
	}
}

// Share returns the part of the parent's budget that the limits leave.
func (a *Account) Share(l budget.Limits) budget.Share {
	return budget.Share{Limits: l, Spent: a.Spent, Held: a.Ledger.Held()}
}

// Admit compares a child's call with the limits; requested is the amount that the run
// is requesting from the runs above. See [machine.Funder]. After an overrun it admits
// nothing. asks reports whether a limit parks the run so that its owner can raise it.
func (a *Account) Admit(c budget.Call, l budget.Limits, requested budget.Amount, asks func(setting string) bool) machine.Grant {
	share := a.Share(l).Below()
	share.Held = share.Held.Add(requested)
	amount, refusal := budget.Line{share}.Admit(c)
	if a.Overrun != "" {
		amount, refusal = budget.Amount{}, budget.Refusal{Setting: a.Overrun, Because: "a call exceeded its budget reservation for " + a.Overrun + ", and nothing starts any more"}
	}
	g := machine.Grant{Amount: amount, Refusal: refusal}
	if refusal.Setting != "" && !refusal.Wait && asks(refusal.Setting) {
		refusal.Call = c
		g.Ask, g.AtLeast = true, share.Limits.AtLeast(refusal, share.Spent)
	}
	return g
}
