package machine

import (
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
)

// StartChild asks for a run to be started, or to go on where it stands. Its
// intent is child.started, after the tool.started of the call that it answers; it
// is settled by child.parked or child.finished, the latter with the call's
// tool_result. A child that was begun is under way: a driver does nothing about one
// that stays due, and a machine may leave it out until run.resumed, or child.waiting
// about one that had parked, says that somebody has to take it up.
type StartChild struct {
	// ID names the child among all that the run ever starts. It is the call's
	// where the child answers one.
	ID string
	// Child is the id of the run of a child that was begun; empty for one that is
	// not.
	Child string
	// Kind and Name say what is to run: the name is that of something that the
	// run's environment offers.
	Kind string
	Name string
	// Step is the step of a workflow that the child is, empty for none.
	Step string
	// Input is what the child is given, as JSON.
	Input json.RawMessage
	// Taint is what the run has taken in, which may be in the input.
	Taint event.Taint
	// Call is the tool call that the child answers, nil for none. Its MaxResultChars
	// bounds what the model sees of the child's answer.
	Call *RunTool
	// Worktree says that the child works in a git worktree of the step's own.
	Worktree bool
}

// CancelChild asks for a child to be ended for good, because its parent was
// cancelled. It stays due like [StartChild], and has the same settlement.
type CancelChild struct {
	ID     string
	Child  string
	Reason string
	// Call is as in [StartChild].
	Call *RunTool
}

// Reserve asks the run above for a part of its budget: a call that the run's
// own share has room for is made only where every share above has, too. Its
// settlement is budget.reserved or budget.refused; it stays due until
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
	// Admit sets a child's call against what is left of the run's own budget
	// beside what the runs above are being asked for, and changes nothing. What it
	// admits counts once it is journalled as budget.reserved with the child's id.
	Admit(c budget.Call, asked budget.Amount) Grant
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
