package machine

import (
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
)

// StartChild starts a run, or continues one. Its intent is child.started, which
// follows the tool.started of the call that it answers. Its settlement is
// child.parked or child.finished, the latter with the call's tool_result. A
// child that has started is under way: a driver ignores it while it stays due. A
// machine may leave it out until run.resumed, or child.waiting about a parked
// child, makes it due again.
type StartChild struct {
	// ID names the child among all that the run ever starts. It is the id of the
	// call that the child answers, if there is one.
	ID string
	// Child is the run's id of a child that has started, and empty for a new one.
	Child string
	// Kind and Name say what to run; Name is one that the run's environment offers.
	Kind string
	Name string
	// Step is the workflow step that the child carries out, empty for none.
	Step string
	// Input is the child's input as JSON.
	Input json.RawMessage
	// Taint is what the run has read, because Input may contain it.
	Taint event.Taint
	// Call is the tool call that the child answers, nil for none. Its MaxResultChars
	// bounds what the model sees of the child's answer.
	Call *RunTool
	// Worktree reports whether the child works in a git worktree of its own.
	Worktree bool
}

// CancelChild ends a child for good because its parent was cancelled. It stays
// due like [StartChild], and has the same settlement.
type CancelChild struct {
	ID     string
	Child  string
	Reason string
	// Call is as in [StartChild].
	Call *RunTool
}

// Reserve requests a part of the parent's budget. A call for which the run's own
// budget has room is made only if every run above has room, too. Its settlement
// is budget.reserved or budget.refused; the action stays due until then.
type Reserve struct {
	// ID names the reservation among all of the run's.
	ID string
	// Call is the worst case of the call, with its output bounded by the run's own
	// budget.
	Call budget.Call
	// NotBefore is the end of a durable wait before the call, zero for none. Nothing
	// is requested until then, so that siblings can use the budget.
	NotBefore time.Time
}

func (StartChild) action()  {}
func (CancelChild) action() {}
func (Reserve) action()     {}

// Funder is a machine whose run may have children. They draw from its budget, so
// it admits their calls.
type Funder interface {
	Machine
	// Admit compares a child's call with what is left of the run's own budget, less
	// what the run is requesting from the runs above. It changes nothing. An
	// admitted call counts once it is journalled as budget.reserved with the child's
	// id.
	Admit(c budget.Call, asked budget.Amount) Grant
	// Drawn returns the open reservations of a child.
	Drawn(child string) []event.BudgetReserved
}

// Grant is a run's reply to a child that requests a part of its budget: an
// amount, or the reason for a refusal.
type Grant struct {
	Amount  budget.Amount
	Refusal budget.Refusal
	// Ask reports whether the limit parks the run, so that its owner can raise it.
	Ask bool
	// AtLeast is the lowest value of the limit that would help, 0 if unknown.
	AtLeast float64
}
