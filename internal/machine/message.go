package machine

import (
	"github.com/pawlrun/pawl/event"
)

// Deliver delivers messages to a child that is under way, oldest first. The child
// journals each message once as input.received, and the run then journals
// message.delivered. Deliver stays due until each message is journalled that way.
type Deliver struct {
	Child string
	// Messages contain their ids. They must not be changed.
	Messages []event.InputReceived
}

func (Deliver) action() {}

// Post is a message from a child to other children.
type Post struct {
	// ID identifies the message. A child that repeats the message after a crash uses
	// the same id.
	ID   string
	To   string
	Text string
	Kind event.MessageKind
	// Taint is the taint of the child.
	Taint event.Taint
}

// Messenger is a machine that routes messages between the runs that it started.
type Messenger interface {
	Machine
	// Post returns the events and the reply for a message from a child. It changes
	// nothing; the caller must journal the events immediately. It returns no events for
	// a message that the run already has.
	Post(child string, p Post) (become []event.Data, told string)
	// Undelivered returns the messages for a child whose delivery is not journalled.
	Undelivered(child string) []event.InputReceived
	// Deliverable reports whether a message is undelivered, and returns the child's id
	// as other children know it.
	Deliverable(child, id string) (to string, ok bool)
}

// Repeater is a machine that can repeat the start of a child: a crash may have
// come between child.started and the child's first event.
type Repeater interface {
	Machine
	// Again returns the action that started the child.
	Again(child string) StartChild
}
