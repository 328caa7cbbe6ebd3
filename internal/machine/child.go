package machine

import (
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// StartChild starts a run or continues one. Its intent is child.started, which follows
// the tool.started of the call that the child answers. Its settlement is child.parked
// or child.finished, the latter with the call's tool_result. The action stays due while
// the child is under way, and a driver then ignores it. A machine may omit it for a
// parked child until run.resumed or child.waiting makes it due again.
type StartChild struct {
	// ID identifies the child among all children of the run. It is the id of the call
	// that the child answers, if there is one.
	ID string
	// Child is the run id of a child that has started, and empty for a new one.
	Child string
	// Kind and Name identify what to run. The run's environment offers the name.
	Kind string
	Name string
	// Step is the workflow step that the child carries out, or empty.
	Step string
	// Input is the child's input as JSON.
	Input json.RawMessage
	// Taint is the taint of the run, because Input may contain what the run has read.
	Taint event.Taint
	// Call is the tool call that the child answers, or nil. Its MaxResultChars limits
	// the child's answer as the model sees it.
	Call *RunTool
	// Worktree reports whether the child works in a git worktree of its own.
	Worktree bool
}

// CancelChild ends a child permanently because its parent was cancelled. It stays due
// like [StartChild] and has the same settlement.
type CancelChild struct {
	ID     string
	Child  string
	Reason string
	// Call is as in [StartChild].
	Call *RunTool
}

// Reserve requests a part of the parent's budget. A call that fits the run's own budget
// is made only if it also fits the budget of every run above. The settlement is
// budget.reserved or budget.refused; the action stays due until then.
type Reserve struct {
	// ID identifies the reservation among all reservations of the run.
	ID string
	// Call is the worst case of the call, with its output bounded by the run's own
	// budget.
	Call budget.Call
	// NotBefore is the end of a durable wait before the call, zero for none. The run
	// requests nothing until then, so that siblings can use the budget.
	NotBefore time.Time
}

func (StartChild) action()  {}
func (CancelChild) action() {}
func (Reserve) action()     {}

// Funder is a machine whose run may have children. They share its budget, so it admits
// their calls.
type Funder interface {
	Machine
	// Admit compares a child's call with the rest of the run's own budget, minus what
	// the run is requesting from the runs above. It changes nothing. An admitted call
	// counts when it is journalled as budget.reserved with the child's id.
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

// Conversing is a machine whose run is a conversation with a model.
type Conversing interface {
	Machine
	// Conversation returns the history, for a run that continues this one. After the
	// run's end it includes messages that the model has not read.
	Conversation() ([]*llm.Message, error)
	// Transcript returns the conversation for display. It may end with calls that
	// have no result yet.
	Transcript() []*llm.Message
	// Unread returns messages that arrived during the current cycle and join the
	// conversation with the next one. They must not be changed.
	Unread() []*llm.Message
	// Model returns the model that the run uses now.
	Model() string
	// Workload returns the id under which providers know the conversation.
	Workload() string
	// Fence returns the markers around untrusted text in the conversation, nil for
	// none.
	Fence() *event.Fence
}

// Spending is a machine that tracks the usage of its run.
type Spending interface {
	Machine
	// Spent returns the usage of the run, and how long it had been running at its last
	// event.
	Spent() budget.Spent
}

// Bounded is a [Machine] whose run has limits.
type Bounded interface {
	Machine
	// Bounds returns the current limits of the run.
	Bounds() budget.Limits
}
