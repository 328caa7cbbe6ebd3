package budget

import (
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/llm"
)

// Errors of a [Ledger].
var (
	// ErrReserved: a reservation of that id is open already.
	ErrReserved = errors.New("budget: already reserved")
	// ErrNotReserved: no reservation of that id is open.
	ErrNotReserved = errors.New("budget: not reserved")
)

// Amount is what a call uses up: money and tokens.
type Amount struct {
	USD    float64
	Input  int64
	Output int64
}

// Add returns the sum.
func (a Amount) Add(b Amount) Amount {
	return Amount{USD: a.USD + b.USD, Input: a.Input + b.Input, Output: a.Output + b.Output}
}

// rounding is what sums of money may be off by.
const rounding = 1e-9

// Exceeds says that more was used than b of anything.
func (a Amount) Exceeds(b Amount) bool {
	return a.USD > b.USD+rounding || a.Input > b.Input || a.Output > b.Output
}

// Reservation is the worst case of one call, set aside until what it really
// used is known. Its id is unique among those that are open in the ledger.
type Reservation struct {
	ID string
	Amount
}

// Admission is the leave to make one call: a reservation that is open in a
// ledger. Only a ledger gives one, and the zero value is none, so whoever asks
// for it calls nothing for which no budget has room.
type Admission struct{ of *Reservation }

// Given says that there is an admission.
func (a Admission) Given() bool { return a.of != nil }

// Usage is what was set aside: none where there is no admission.
func (a Admission) Usage() llm.Usage {
	if a.of == nil {
		return llm.Usage{}
	}
	return llm.Usage{Input: a.of.Input, Output: a.of.Output}
}

// Equal says that both are of the same reservation, or both are none.
func (a Admission) Equal(b Admission) bool {
	return a.of == b.of || a.of != nil && b.of != nil && *a.of == *b.of
}

// Ledger is the account of everything that draws from one budget: a run's own
// calls and, in the ledger of the root, those of its whole tree. It is a value:
// its methods leave the receiver as it is and return a new one (ALF-77). The
// zero value is an account that nobody has drawn from.
type Ledger struct {
	spent Amount
	open  *held
}

// Reserve sets the worst case of a call aside. Whether the budget has room for
// it is for [Limits.Admit] to say.
func (l Ledger) Reserve(r Reservation) (Ledger, error) {
	if l.open.find(r.ID) != nil {
		return l, fmt.Errorf("%w: %s", ErrReserved, r.ID)
	}
	return Ledger{spent: l.spent, open: l.open.with(&held{hash: hashOf(r.ID), of: r}, 0)}, nil
}

// Commit replaces a reservation by what was really used, which is nothing for
// a call that was not made.
func (l Ledger) Commit(id string, used Amount) (Ledger, error) {
	if l.open.find(id) == nil {
		return l, fmt.Errorf("%w: %s", ErrNotReserved, id)
	}
	return Ledger{spent: l.spent.Add(used), open: l.open.without(id, hashOf(id), 0)}, nil
}

// Spent is the sum of everything that was committed.
func (l Ledger) Spent() Amount { return l.spent }

// Held is the sum of the reservations that are open.
func (l Ledger) Held() Amount { return l.open.total() }

// Admission is the leave to make the call of an open reservation, none where
// none of that id is open.
func (l Ledger) Admission(id string) Admission {
	return Admission{of: l.open.find(id)} // what a ledger holds is never changed
}

// Reserved is what is set aside under an id, and whether anything is.
func (l Ledger) Reserved(id string) (Amount, bool) {
	if r := l.open.find(id); r != nil {
		return r.Amount, true
	}
	return Amount{}, false
}
