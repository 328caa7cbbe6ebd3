package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// AmbiguousError is returned for a decision on a question that several of the runs
// below the named one ask under the same id. It is an [ErrNotPending].
type AmbiguousError struct {
	Run, ID string
	// Asked are the runs that ask.
	Asked []string
}

// Error says which runs a decision can name.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s is asked by several runs below run %s: name one of %s", e.ID, e.Run, strings.Join(e.Asked, ", "))
}

// Is reports whether it is not known what the decision is about.
func (e *AmbiguousError) Is(target error) bool { return target == ErrNotPending }

// Addressee is the run that a command is for: a decision goes to the run that asks,
// where that is the named run or one below it.
func (e *Engine) Addressee(ctx context.Context, c journal.Command) (string, error) {
	if !isDecision(c) || strings.HasPrefix(c.CallID, c.Run+"-") {
		return c.Run, nil
	}
	if parts := strings.Split(c.CallID, "-"); len(parts) > 2 { // an id of a call begins with that of its run
		if made := strings.Join(parts[:len(parts)-2], "-"); e.isBelow(ctx, made, c.Run) {
			return made, nil
		}
	}
	top, err := e.store.Run(ctx, c.Run)
	if err != nil {
		return c.Run, nil // whoever sends it says what is wrong
	}
	rows, err := e.store.Runs(ctx, journal.Filter{Root: top.Placed().Root})
	if err != nil {
		return "", fmt.Errorf("engine: runs below run %s: %w", c.Run, err)
	}
	return e.asker(ctx, fromOn(rows, c.Run), c)
}

// isBelow reports whether a run is below another one.
func (e *Engine) isBelow(ctx context.Context, run, above string) bool {
	for run != "" {
		row, err := e.store.Run(ctx, run)
		if err != nil {
			return false
		}
		if run = row.Parent; run == above {
			return true
		}
	}
	return false
}

// fromOn are the rows of a tree that are a run's or of runs below it.
func fromOn(rows []journal.Run, run string) []journal.Run {
	parent := make(map[string]string, len(rows))
	for _, r := range rows {
		parent[r.ID] = r.Parent
	}
	return slices.DeleteFunc(rows, func(r journal.Run) bool {
		at := r.ID
		for at != run && at != "" {
			at = parent[at]
		}
		return at == ""
	})
}

// asker is the run that asks what a decision is about, or that has asked it: the
// named one before those below it. Where none has, it is the named one.
func (e *Engine) asker(ctx context.Context, rows []journal.Run, c journal.Command) (string, error) {
	var asks []string
	for _, r := range rows {
		if r.State == journal.Ended {
			continue
		}
		m, err := e.Inspect(ctx, r.ID)
		switch {
		case err != nil || pending(m.State(), c.CallID) == nil: // where it cannot be read, others may ask
		case r.ID == c.Run:
			return c.Run, nil
		default:
			asks = append(asks, r.ID)
		}
	}
	switch len(asks) {
	case 0:
		return e.asked(ctx, rows, c), nil
	case 1:
		return asks[0], nil
	}
	return "", &AmbiguousError{Run: c.Run, ID: c.CallID, Asked: asks}
}

// asked is the run that took a decision.
func (e *Engine) asked(ctx context.Context, rows []journal.Run, c journal.Command) string {
	for _, r := range rows {
		if made, err := e.Decisions(ctx, r.ID, c.CallID); err == nil && len(made) > 0 {
			return r.ID
		}
	}
	return c.Run
}

// HasTaken reports whether a run's journal has what a command becomes, whose number the
// inbox gave, in an event behind that with the number after. A run that has ended
// may have done so before it took the command up, which is then gone with its
// inbox. A second cancel becomes nothing: the run is cancelled as it asks.
func (e *Engine) HasTaken(ctx context.Context, c journal.Command, after int64) (bool, error) {
	if c.Kind == journal.Cancel {
		after = 0
	}
	records, err := e.store.Records(ctx, c.Run, after, 0)
	if err != nil {
		return false, fmt.Errorf("engine: what became of %s of run %s: %w", c.Kind, c.Run, err)
	}
	for _, r := range records {
		if r.Run != c.Run || !becomes(c.Kind, event.Type(r.Type)) {
			continue
		}
		ev, err := event.Decode(r.Body)
		if err != nil {
			return false, fmt.Errorf("engine: run %s, event %d: %w", c.Run, r.Seq, err)
		}
		if isOf(ev.Data, c) {
			return true, nil
		}
	}
	return false, nil
}

// becomes reports whether a command of a kind is journalled as an event of a type.
func becomes(kind journal.CommandKind, t event.Type) bool {
	switch kind {
	case journal.Cancel:
		return t == event.TypeCancelRequested
	case journal.Pause:
		return t == event.TypePauseRequested
	case journal.Input:
		return t == event.TypeInputReceived
	case journal.Raise:
		return t == event.TypeBudgetRaised
	}
	return t.Resolves()
}

// isOf reports whether an event of the type that a command becomes is of this
// one. Of two decisions on a call the first counts, whoever made it.
func isOf(data event.Data, c journal.Command) bool {
	switch d := data.(type) {
	case event.CancelRequested:
		return true
	case event.PauseRequested:
		return d.Command == c.ID
	case event.InputReceived:
		return d.Command == c.ID
	case event.BudgetRaised:
		return d.Command == c.ID
	case event.Resolving:
		return d.Resolution().ID == c.CallID
	}
	return false
}
