// Package tree is what every machine has to do whose run may start others: the
// clock and the account that they draw from, how children stand, when their run
// parks for them, and how it ends. It is pure, as machines are.
package tree

import (
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

// Account is what a run and those that it started have used and set aside.
type Account struct {
	Ledger budget.Ledger
	Spent  budget.Spent
	Costs  budget.Tracker
	// Overrun is the setting that a call went beyond, "" for none. Nothing starts
	// any more.
	Overrun string
	drawn   map[string][]event.BudgetReserved
}

// Drawn are the reservations of a child that are open.
func (a *Account) Drawn(child string) []event.BudgetReserved { return slices.Clone(a.drawn[child]) }

// ReservationID is the id by which a run knows a reservation: its own where child is
// empty, or one of a run that it started, or of one below that.
func ReservationID(child, id string) string {
	if child == "" {
		return id
	}
	return child + "/" + id
}

// Reserve sets a call aside, the run's own or a child's.
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

// Commit puts what a call used in the place of what was set aside for it. Of a
// child's it says whether that was more, and adds it to the run's sums, which are
// those of its whole tree; the run's own was added when it was answered.
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

// Use adds a call to what the run and its children have used.
func (a *Account) Use(u llm.Usage, c llm.Cost) {
	a.Costs = a.Costs.Add(u, c)
	a.Spent.Input += u.Input
	a.Spent.Output += u.Output
	a.Spent.USD = a.Costs.Cost().USD
}

// Progress begins the time without anything new again, unless its limit was reached
// before: what comes when the run is stopped for it, such as the end of a call that
// it cut short, is no progress. An answer in a child is progress of its parent's:
// whether the child gets on is for its own limit.
func (a *Account) Progress(l budget.Limits) {
	if !l.Stalled(a.Spent) {
		a.Spent.Idle = 0
	}
}

// Share is the part that limits leave in the budget that the run draws from.
func (a *Account) Share(l budget.Limits) budget.Share {
	return budget.Share{Limits: l, Spent: a.Spent, Held: a.Ledger.Held()}
}

// Admit sets a child's call against the limits, beside what the runs above are
// being asked for; see [machine.Funder]. After an overrun of a limit nothing starts.
// asks says of a limit that its owner wants to be asked for more.
func (a *Account) Admit(c budget.Call, l budget.Limits, asked budget.Amount, asks func(setting string) bool) machine.Grant {
	share := a.Share(l).Below()
	share.Held = share.Held.Add(asked)
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
