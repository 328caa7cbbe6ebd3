package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// mail holds messages for the children of a run. The holder of the parent's lock
// puts them there, and each child takes its own at its next boundary, so neither
// waits for the other. It is safe for concurrent use.
type mail struct {
	*core
	mu    sync.Mutex
	boxes map[string]*letterbox
}

// letterbox holds the messages for one child; last is the newest that it ever held.
type letterbox struct {
	messages []event.InputReceived
	last     string
}

// put adds the messages that were not added before, oldest first, and reports
// whether there were any.
func (m *mail) put(child string, messages []event.InputReceived) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.boxes == nil {
		m.boxes = map[string]*letterbox{}
	}
	p := m.boxes[child]
	if p == nil {
		p = &letterbox{}
		m.boxes[child] = p
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
	if p := m.boxes[child]; p != nil {
		messages, p.messages = p.messages, nil
	}
	return messages
}

func (m *mail) clear(child string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.boxes, child)
}

// posted is a message of a child on its way to the parent.
type posted struct {
	machine.Post
	// answer receives the reply for the child; it does not block.
	answer func(string)
}

// carry journals a child's message and its deliveries, and returns the reply for
// the child after the commit.
func (m *mail) carry(child string, post machine.Post) (reply string, carried bool, err error) {
	messenger, ok := m.machine.(machine.Messenger)
	if !ok || m.machine.State().Phase != machine.Running {
		return "", false, nil // the child stops as well
	}
	become, reply := messenger.Post(child, post)
	for _, data := range become {
		if err := m.stage(data); err != nil {
			return "", false, err
		}
	}
	return reply, true, nil
}

// handOver puts messages where the child takes them.
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
		return false, nil // it is journalled already
	}
	return true, m.stage(event.MessageDelivered{ID: id, To: to})
}

// reconcile journals which messages an ended child has, according to its own
// journal.
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

// messagesOf returns the ids of the messages in a run's journal.
func (e *Engine) messagesOf(ctx context.Context, run string) (map[string]bool, error) {
	has := map[string]bool{}
	for ev, err := range drive.AsStored(ctx, e.store, run, event.TypeInputReceived) {
		if errors.Is(err, journal.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return has, err
		}
		if said, ok := ev.Data.(event.InputReceived); ok {
			has[said.MessageID] = true
		}
	}
	return has, nil
}

// AmbiguousError is returned for a decision on a question id that several runs
// below the named one use. It is an [ErrNotPending].
type AmbiguousError struct {
	Run, ID string
	// Candidates are the runs that ask.
	Candidates []string
}

// Error names the runs that the decision may be for.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s is asked by several runs below run %s: name one of %s", e.ID, e.Run, strings.Join(e.Candidates, ", "))
}

// Is reports whether target is [ErrNotPending].
func (e *AmbiguousError) Is(target error) bool { return target == ErrNotPending }

// Addressee returns the run that receives a command: a decision goes to the run
// that asks, if that is the named run or one below it.
func (e *Engine) Addressee(ctx context.Context, c journal.Command) (string, error) {
	if !isDecision(c) || strings.HasPrefix(c.CallID, c.Run+"-") {
		return c.Run, nil
	}
	if parts := strings.Split(c.CallID, "-"); len(parts) > 2 { // the id of a call begins with the run's id
		if made := strings.Join(parts[:len(parts)-2], "-"); e.isBelow(ctx, made, c.Run) {
			return made, nil
		}
	}
	top, err := e.store.Run(ctx, c.Run)
	if err != nil {
		return c.Run, nil // sending it fails with the right error
	}
	rows, err := e.store.Runs(ctx, journal.Filter{Root: top.Placed().Root})
	if err != nil {
		return "", fmt.Errorf("engine: runs below run %s: %w", c.Run, err)
	}
	return e.askingRun(ctx, fromOn(rows, c.Run), c)
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

// fromOn returns the rows of a run and of the runs below it.
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

// askingRun returns the run that asks, or asked, the question of a decision; the
// named run comes before those below it. If there is none, it returns the named
// run.
func (e *Engine) askingRun(ctx context.Context, rows []journal.Run, c journal.Command) (string, error) {
	var asks []string
	for _, r := range rows {
		if r.State == journal.Ended {
			continue
		}
		w, err := e.Past().Waits(ctx, r)
		switch {
		case err != nil || !slices.ContainsFunc(w.Questions, func(q journal.Wait) bool { return q.ID == c.CallID }): // if it cannot be read, another run may still ask
		case r.ID == c.Run:
			return c.Run, nil
		default:
			asks = append(asks, r.ID)
		}
	}
	switch len(asks) {
	case 0:
		return e.decidedIn(ctx, rows, c), nil
	case 1:
		return asks[0], nil
	}
	return "", &AmbiguousError{Run: c.Run, ID: c.CallID, Candidates: asks}
}

// decidedIn returns the run that took a decision.
func (e *Engine) decidedIn(ctx context.Context, rows []journal.Run, c journal.Command) string {
	for _, r := range rows {
		if made, err := e.Decisions(ctx, r.ID, c.CallID); err == nil && len(made) > 0 {
			return r.ID
		}
	}
	return c.Run
}

// HasTaken reports whether a run's journal contains, behind the event with the
// number after, the event that a command in the inbox became. A run may end
// before it takes a command, which is then deleted with its inbox. A second
// cancel becomes no event; it counts as taken.
func (e *Engine) HasTaken(ctx context.Context, c journal.Command, after int64) (bool, error) {
	if c.Kind == journal.Cancel {
		after = 0
	}
	for ev, err := range drive.Since(ctx, e.store, c.Run, after, func(t event.Type) bool { return becomes(c.Kind, t) }) {
		if err != nil {
			return false, fmt.Errorf("engine: what became of %s of run %s: %w", c.Kind, c.Run, err)
		}
		if ev.Run == c.Run && isOf(ev.Data, c) {
			return true, nil
		}
	}
	return false, nil
}

// becomes reports whether a command of a kind is journalled as an event of a
// type.
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

// isOf reports whether an event of the right type comes from this command. Of
// two decisions on a call the first counts, whichever command made it.
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
