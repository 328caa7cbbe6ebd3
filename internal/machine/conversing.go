package machine

import (
	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Conversing is a machine whose run is a conversation with a model.
type Conversing interface {
	Machine
	// Conversation is the history so far, for a run that continues this one. Once
	// the run has ended it includes the messages that came too late to be read.
	Conversation() ([]*llm.Message, error)
	// Transcript is the conversation as it stands, for showing: it may end with
	// calls that have no result yet.
	Transcript() []*llm.Message
	// Unread are messages that came while the run went and join the conversation
	// with its next cycle. They must not be changed.
	Unread() []*llm.Message
	// Model is the one that the run stands on.
	Model() string
	// Workload is the id under which providers know the conversation.
	Workload() string
	// Fence is what marks untrusted text in the conversation, nil where nothing does.
	Fence() *event.Fence
}

// Spending is a machine that counts what its run uses.
type Spending interface {
	Machine
	// Spent is what the run has used, and how long it has been going up to its last
	// event.
	Spent() budget.Spent
}
