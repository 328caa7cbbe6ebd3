package machine

import (
	"github.com/pawlrun/pawl/event"
)

// Deliver hands messages to a child that is under way, oldest first. The child
// journals each as input.received, once, and the run then journals
// message.delivered. Deliver stays due until that is journalled for each
// message.
type Deliver struct {
	Child string
	// Messages carry their ids. They must not be changed.
	Messages []event.InputReceived
}

func (Deliver) action() {}

// Post is a message of a child for other children.
type Post struct {
	// ID names the message. A child that repeats the message after a crash uses the
	// same id.
	ID   string
	To   string
	Text string
	Kind event.MessageKind
	// Taint is what the child has read.
	Taint event.Taint
}

// Messenger is a machine that carries messages between the runs that it started.
type Messenger interface {
	Machine
	// Post returns the events and the reply for a message of a child. It changes
	// nothing; the caller must journal the events at once. There are none for a
	// message that the run already has.
	Post(child string, p Post) (become []event.Data, told string)
	// Undelivered returns the messages for a child that it is not yet known to have.
	Undelivered(child string) []event.InputReceived
	// Deliverable reports whether a message is among those, and returns the child's
	// id as other children know it.
	Deliverable(child, id string) (to string, ok bool)
}

// Repeater is a machine that can repeat the start of a child: a crash may have
// come between child.started and the child's first event.
type Repeater interface {
	Machine
	// Again returns the action that started the child.
	Again(child string) StartChild
}
