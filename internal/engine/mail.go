package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// mail is what lies ready for the children of a run. Whoever has the parent's lock
// puts it there, and each child takes its own at the next boundary, so that neither
// waits for the other. It is safe for concurrent use.
type mail struct {
	*core
	mu    sync.Mutex
	piles map[string]*pile
}

// pile is what lies ready for one child; last is the newest that ever did.
type pile struct {
	messages []event.InputReceived
	last     string
}

// put adds those of a child's messages, oldest first, that were not put there yet, and
// reports whether there were any.
func (m *mail) put(child string, messages []event.InputReceived) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.piles == nil {
		m.piles = map[string]*pile{}
	}
	p := m.piles[child]
	if p == nil {
		p = &pile{}
		m.piles[child] = p
	}
	first := len(messages)
	for first > 0 && messages[first-1].MessageID != p.last {
		first--
	}
	if first == len(messages) {
		return false
	}
	p.messages, p.last = append(p.messages, messages[first:]...), messages[len(messages)-1].MessageID
	return true
}

func (m *mail) take(child string) (messages []event.InputReceived) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.piles[child]; p != nil {
		messages, p.messages = p.messages, nil
	}
	return messages
}

func (m *mail) clear(child string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.piles, child)
}

// posted is a message of a child on its way to the run above.
type posted struct {
	machine.Post
	// answer takes what the child is told, and does not wait.
	answer func(string)
}

// carry journals a child's message with what becomes of it, and gives what the child
// is told once that is on disk.
func (m *mail) carry(child string, post machine.Post) (told string, carried bool, err error) {
	messenger, ok := m.machine.(machine.Messenger)
	if !ok || m.machine.State().Phase != machine.Running {
		return "", false, nil // the child stops, too
	}
	become, told := messenger.Post(child, post)
	for _, data := range become {
		if err := m.stage(data); err != nil {
			return "", false, err
		}
	}
	return told, true, nil
}

// handOver puts messages where their reader takes them.
func (m *mail) handOver(a machine.Deliver) {
	if m.put(a.Child, a.Messages) {
		m.engine.wake(a.Child, "")
	}
}

// noteDelivered journals that a child has a message.
func (m *mail) noteDelivered(child, id string) (staged bool, err error) {
	messenger, ok := m.machine.(machine.Messenger)
	if !ok {
		return false, nil
	}
	to, ok := messenger.Deliverable(child, id)
	if !ok {
		return false, nil // that is known
	}
	return true, m.stage(event.MessageDelivered{ID: id, To: to})
}

// reconcile makes the run say of the messages for a child that has ended what
// the child's own journal says.
func (m *mail) reconcile(ctx context.Context, child string) error {
	m.clear(child)
	messenger, ok := m.machine.(machine.Messenger)
	if !ok {
		return nil
	}
	open := messenger.Undelivered(child)
	if len(open) == 0 {
		return nil
	}
	has, err := m.engine.messagesOf(ctx, child)
	if err != nil && !isUnreadable(err) {
		return m.log.failed(err)
	}
	for _, said := range slices.Clone(open) {
		if has[said.MessageID] {
			if _, err := m.noteDelivered(child, said.MessageID); err != nil {
				return err
			}
		}
	}
	return nil
}

// messagesOf are the ids of the messages in a run's journal.
func (e *Engine) messagesOf(ctx context.Context, run string) (map[string]bool, error) {
	records, err := e.store.Records(ctx, run, 0, 0)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, r := range records {
		if r.Type != string(event.TypeInputReceived) {
			continue
		}
		ev, err := event.Decode(r.Body)
		if err != nil {
			return has, &unreadableError{err}
		}
		if said, ok := ev.Data.(event.InputReceived); ok {
			has[said.MessageID] = true
		}
	}
	return has, nil
}
