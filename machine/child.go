package machine

import (
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
)

// StartChild asks for the run that answers a call to be started, or to go on
// where it stands. Its intent is tool.started with child.started; it stays due
// until child.parked, or child.finished with the call's tool_result, is there,
// and a driver that has the child under way does nothing about it.
type StartChild struct {
	// Call is the call, as for a tool; MaxResultChars bounds what the model sees
	// of the child's answer.
	Call RunTool
	// Child is the id of a child that was begun; empty for one that is not.
	Child string
	// Taint is what the run has taken in, which may be in the task.
	Taint event.Taint
}

// CancelChild asks for a child to be ended for good, because its parent was
// cancelled. It stays due like [StartChild], and has the same settlement.
type CancelChild struct {
	Call   RunTool
	Child  string
	Reason string
}

// Reserve asks the run above for a part of its budget: a call that the run's
// own share has room for is made only where every share above has, too (FIELD
// F3). Its settlement is budget.reserved or budget.refused; it stays due until
// one of them is there.
type Reserve struct {
	// ID names the reservation. No other one of the run's has it.
	ID string
	// Call is the call at its worst, its output as the run's own share allows.
	Call budget.Call
	// NotBefore is the end of a durable wait before the call, zero for none: until
	// then nothing is asked for, because others may use it.
	NotBefore time.Time
}

func (StartChild) action()  {}
func (CancelChild) action() {}
func (Reserve) action()     {}

// Funder is a machine whose run may have children: they draw from its budget,
// so their calls are its to admit.
type Funder interface {
	Machine
	// Admit sets a child's call against what is left of the run's own budget,
	// and changes nothing. What it admits counts once it is journalled as
	// budget.reserved with the child's id.
	Admit(budget.Call) Grant
	// Drawn are the reservations of a child that are open.
	Drawn(child string) []event.BudgetReserved
}

// Grant is what a run says to a child that asks for a part of its budget: an
// amount, or why there is none.
type Grant struct {
	Amount  budget.Amount
	Refusal budget.Refusal
	// Ask says that the owner of the limit wants to be asked for more.
	Ask bool
	// AtLeast is the value below which raising the limit changes nothing, 0 where
	// that is not known.
	AtLeast float64
}
