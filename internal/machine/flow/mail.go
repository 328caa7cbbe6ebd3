package flow

import (
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// MostUnread limits the undelivered messages for one reader.
const MostUnread = 1_000

// post is the state of all messages.
type post struct {
	// mail contains the readers with a current run, by run id. unread contains the
	// mailboxes of undelivered messages, by message id. toDeliver contains the
	// mailboxes with messages for a current run.
	mail      map[string]reader
	unread    map[string]*mailbox
	toDeliver []*mailbox
	// sender is the mailbox of the last message's sender.
	sender *mailbox
	// coordinator receives the messages of steps.
	coordinator coordinator
}

// mailbox contains the messages to a step or to the coordinator.
type mailbox struct {
	// unread contains the undelivered messages, oldest first.
	unread []event.InputReceived
	// run is the run that reads the messages, or empty. given contains the messages
	// with which it started.
	run   string
	given []event.InputReceived
	// came contains the messages that the run received later.
	came []event.InputReceived
	// replies contains the replies to the messages that the run sent, by message id.
	replies map[string]string
}

// started returns the messages with which the reader started, or would start now.
func (b *mailbox) started() []event.InputReceived {
	if b.run != "" {
		return b.given
	}
	return b.unread
}

// beginMail delivers all unread messages to a run at its start.
func (m *Machine) beginMail(b *mailbox, run, to string) {
	b.run, b.given, b.unread = run, b.unread, nil
	m.mail[run] = reader{b, to}
	for _, said := range b.given {
		delete(m.unread, said.MessageID)
		m.record("message "+said.MessageID, event.MessageDelivered{ID: said.MessageID, To: to}, nil)
	}
}

// readAgain returns a run's messages to its mailbox for the run that replaces it.
func (m *Machine) readAgain(b *mailbox) {
	for _, said := range b.given {
		m.requests.drop("message " + said.MessageID)
	}
	unread := slices.Concat(b.given, b.came, b.unread)
	m.endMail(b)
	b.unread = unread
	for _, said := range unread {
		m.unread[said.MessageID] = b
	}
}

// endMail handles the end of a reader.
func (m *Machine) endMail(b *mailbox) {
	delete(m.mail, b.run)
	m.undue(b)
	b.run, b.given, b.came, b.replies = "", nil, nil, nil
}

// reader is a run that reads a mailbox.
type reader struct {
	*mailbox
	// step is the step that the run carries out, or the coordinator.
	step string
}

// add puts a message into a mailbox.
func (m *Machine) add(b *mailbox, said event.InputReceived) {
	b.unread = append(b.unread, said)
	m.unread[said.MessageID] = b
	if b.run != "" && len(b.unread) == 1 {
		m.toDeliver = append(m.toDeliver, b)
	}
}

// delivered removes a message that the current run has received.
func (m *Machine) delivered(id string) {
	if b := m.unread[id]; b != nil && b.run != "" {
		at := slices.IndexFunc(b.unread, func(said event.InputReceived) bool { return said.MessageID == id })
		b.came = append(b.came, b.unread[at])
	}
	m.remove(id)
}

// remove removes a delivered or dropped message. The message is either the newest,
// which was dropped on arrival, or one of the oldest.
func (m *Machine) remove(id string) {
	b := m.unread[id]
	if b == nil {
		return
	}
	delete(m.unread, id)
	is := func(said event.InputReceived) bool { return said.MessageID == id }
	if n := len(b.unread); n > 0 && is(b.unread[n-1]) {
		b.unread = b.unread[:n-1]
	} else if i := slices.IndexFunc(b.unread, is); i == 0 {
		b.unread = b.unread[1:]
	} else if i > 0 {
		b.unread = slices.Delete(b.unread, i, i+1)
	}
	if len(b.unread) == 0 && b.run != "" {
		m.undue(b)
	}
}

// undue removes a mailbox from toDeliver.
func (m *Machine) undue(b *mailbox) {
	m.toDeliver = slices.DeleteFunc(m.toDeliver, func(r *mailbox) bool { return r == b })
}

// drop records the reason why the unread messages of a mailbox are not delivered.
func (m *Machine) drop(b *mailbox, to string, reason event.DropReason) {
	unread := b.unread
	if b.unread = nil; b.run != "" {
		m.undue(b)
	}
	for _, said := range unread {
		delete(m.unread, said.MessageID)
		m.record("message "+said.MessageID, event.MessageDropped{ID: said.MessageID, To: to, Reason: reason}, nil)
	}
}

// deliveries appends the deliveries to current runs to the due actions.
func (m *Machine) deliveries(due []machine.Action) []machine.Action {
	for _, b := range m.toDeliver {
		due = append(due, machine.Deliver{Child: b.run, Messages: b.unread})
	}
	return due
}

// Undelivered implements [machine.Messenger].
func (m *Machine) Undelivered(child string) []event.InputReceived {
	if r, known := m.mail[child]; known {
		return r.unread
	}
	return nil
}

// Deliverable implements [machine.Messenger].
func (m *Machine) Deliverable(child, id string) (to string, ok bool) {
	r, known := m.mail[child]
	if !known {
		return "", false
	}
	return r.step, slices.ContainsFunc(r.unread, func(said event.InputReceived) bool { return said.MessageID == id })
}

// Again implements [machine.Repeater].
func (m *Machine) Again(child string) machine.StartChild { return m.under[child].again() }
