package machine

import (
	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

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
