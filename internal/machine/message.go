package machine

import (
	"github.com/pawlrun/pawl/event"
)

// Deliver asks for messages to be handed to a child that is under way, oldest
// first. The child journals each as input.received, once, and the run then has
// message.delivered. It stays due until that is there, for each of them.
type Deliver struct {
	Child string
	// Messages have their ids. They must not be changed.
	Messages []event.InputReceived
}

func (Deliver) action() {}

// Post is what a child says, for others to hear.
type Post struct {
	// ID names the message: a child that a crash cut short says it again under the
	// same one.
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
	// Post says what becomes of a message of a child, and what the child is told. It
	// changes nothing: the events, which are none for a message that has come before,
	// have to be journalled at once.
	Post(child string, p Post) (become []event.Data, told string)
	// Undelivered are the messages for a child of which nobody knows yet that it
	// has them.
	Undelivered(child string) []event.InputReceived
	// Deliverable says that a message is among those, and by what id the child is known
	// to others.
	Deliverable(child, id string) (to string, ok bool)
}

// Repeater is a machine that can say again what a child is started with that was
// begun: a crash may have come before the child was made.
type Repeater interface {
	Machine
	// Again gives the action by which the child was begun.
	Again(child string) StartChild
}
