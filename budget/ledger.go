package budget

import (
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/llm"
)

// Errors of a [Ledger].
var (
	// ErrReserved: a reservation with that id is open.
	ErrReserved = errors.New("budget: already reserved")
	// ErrNotReserved: no reservation with that id is open.
	ErrNotReserved = errors.New("budget: not reserved")
)

// Amount is the money and tokens that a call uses.
type Amount struct {
	USD    float64
	Input  int64
	Output int64
}

// Add returns the sum.
func (a Amount) Add(b Amount) Amount {
	return Amount{USD: a.USD + b.USD, Input: a.Input + b.Input, Output: a.Output + b.Output}
}

// rounding bounds the error of sums of money.
const rounding = 1e-9

// Exceeds reports whether a is more than b in money or in any kind of tokens.
func (a Amount) Exceeds(b Amount) bool {
	return a.USD > b.USD+rounding || a.Input > b.Input || a.Output > b.Output
}

// Reservation is the worst case of one call, reserved until its actual usage is known.
// Its id is unique among the open ones of the ledger.
type Reservation struct {
	ID string
	Amount
}

// Admission is the permission to make one call: an open reservation in a
// ledger. Only a ledger creates one, and the zero value is none, so that code
// which requires an Admission makes no call without a budget for it.
type Admission struct{ of *Reservation }

// Given reports whether there is an admission.
func (a Admission) Given() bool { return a.of != nil }

// Usage returns the reserved usage: zero without an admission.
func (a Admission) Usage() llm.Usage {
	if a.of == nil {
		return llm.Usage{}
	}
	return llm.Usage{Input: a.of.Input, Output: a.of.Output}
}

// Equal reports whether both have the same reservation, or both have none.
func (a Admission) Equal(b Admission) bool {
	return a.of == b.of || a.of != nil && b.of != nil && *a.of == *b.of
}

// Ledger holds the open reservations of everything that uses one budget: a run's own
// calls and, in the ledger of the root, those of its whole tree. The zero value holds
// none.
type Ledger struct {
	open map[string]*Reservation
	held Amount
}

// Reserve reserves the worst case of a call. [Limits.Admit] decides whether it
// fits the budget.
func (l *Ledger) Reserve(r Reservation) error {
	if l.open[r.ID] != nil {
		return fmt.Errorf("%w: %s", ErrReserved, r.ID)
	}
	if l.open == nil {
		l.open = map[string]*Reservation{}
	}
	l.open[r.ID], l.held = &r, l.held.Add(r.Amount)
	return nil
}

// Commit removes the reservation of a call that was made, or will not be made.
func (l *Ledger) Commit(id string) error {
	r := l.open[id]
	if r == nil {
		return fmt.Errorf("%w: %s", ErrNotReserved, id)
	}
	delete(l.open, id)
	l.held = l.held.Add(Amount{USD: -r.USD, Input: -r.Input, Output: -r.Output})
	if len(l.open) == 0 {
		l.held = Amount{} // removes rounding errors
	}
	return nil
}

// Held returns the sum of the open reservations.
func (l *Ledger) Held() Amount { return l.held }

// Admission returns the permission to make the call of an open reservation;
// none if no reservation with that id is open.
func (l *Ledger) Admission(id string) Admission { return Admission{of: l.open[id]} }

// Reserved returns the amount reserved under an id, and whether there is a reservation.
func (l *Ledger) Reserved(id string) (Amount, bool) {
	if r := l.open[id]; r != nil {
		return r.Amount, true
	}
	return Amount{}, false
}

// Tracker sums the usage and cost of the calls of a run. It is a value: adding returns
// a new one. The zero value has no calls.
type Tracker struct {
	usage llm.Usage
	cost  llm.Cost
	calls int
}

// Add returns a tracker that counts one more call. The sum is priced
// while every part of it is.
func (t Tracker) Add(u llm.Usage, c llm.Cost) Tracker {
	return Tracker{
		usage: t.usage.Add(u),
		cost:  llm.Cost{USD: t.cost.USD + c.USD, Priced: c.Priced && (t.cost.Priced || t.calls == 0)},
		calls: t.calls + 1,
	}
}

// Usage returns the sum over all calls.
func (t Tracker) Usage() llm.Usage { return t.usage }

// Cost returns the sum over all calls.
func (t Tracker) Cost() llm.Cost { return t.cost }

// Calls returns the number of calls.
func (t Tracker) Calls() int { return t.calls }

// Share is one run's part of a budget: its own limits, and what it and
// everything that it started have spent and reserved.
type Share struct {
	Limits Limits
	Spent  Spent
	Held   Amount
}

// Below returns the part of a share that limits the runs which its run started:
// money, tokens and time. The number of model calls and the size of requests
// are limited per run.
func (s Share) Below() Share {
	s.Limits.MaxModelTurns, s.Limits.MaxRequestTokens = 0, 0
	return s
}

// Line is the list of shares that a call uses: that of the run that makes it,
// then that of the run which started this one, and so on up to the root.
// Everything that calls a model for a run (its cycles, retries, summaries,
// judges and children) uses the same line, so that no share is overspent.
type Line []Share

// Admit checks the worst case of a call against the rest of every share, as
// [Limits.Admit] does for one: what is left of an ancestor's budget limits a
// run, whatever its own limits are. Reserve the amount in each share, or in
// none. It is worth waiting only if no share refuses the call for good.
func (l Line) Admit(c Call) (Amount, Refusal) {
	var a Amount
	var waiting Refusal
	for _, s := range l {
		admitted, refusal := s.Limits.Admit(s.Spent, s.Held, c)
		switch {
		case refusal.Setting == "":
			a, c.Output = admitted, admitted.Output
		case !refusal.Wait:
			return Amount{}, refusal
		case waiting.Setting == "":
			waiting = refusal
		}
	}
	if waiting.Setting != "" {
		return Amount{}, waiting
	}
	return a, Refusal{}
}
