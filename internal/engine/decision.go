package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// ErrNotPending is returned for a decision on what waits for none.
var ErrNotPending = errors.New("engine: no such call waits for a decision")

// DecidedError is returned for a decision that comes after another one, or
// after the time for it was over. It is an [ErrNotPending].
type DecidedError struct {
	// Decision is the one that counts.
	Decision event.Resolving
}

// Error says what was decided, by whom and when.
func (e *DecidedError) Error() string {
	d := e.Decision.Resolution()
	at := d.At.Format(time.RFC3339)
	if d.Kind == event.ApprovalExpired {
		return fmt.Sprintf("%s %s is already resolved: nobody decided in time, so it expired at %s", d.Of, d.ID, at)
	}
	return fmt.Sprintf("%s %s is already resolved: %s by %s at %s", d.Of, d.ID, d.Kind, d.Approver, at)
}

// Is reports whether nothing waits for a decision any more.
func (e *DecidedError) Is(target error) bool { return target == ErrNotPending }

// MessageError is returned for a decision on a question that a message answers.
type MessageError struct {
	Run      string
	Question event.Question
}

// Error says what answers it.
func (e *MessageError) Error() string {
	return fmt.Sprintf("engine: the %s question %s of run %s is neither approved nor rejected: an input to that run answers it", e.Question.Kind, e.Question.ID, e.Run)
}

// Is reports whether the question waits for no decision.
func (e *MessageError) Is(target error) bool { return target == ErrNotPending }

// decision is what a command says of a question: nil when it does not wait for
// that, and its expiry when it comes too late, by the time at which it was sent.
func decision(c journal.Command, s machine.State) event.Data {
	q := pending(s, c.CallID)
	if q == nil {
		return nil
	}
	r := resolution(c)
	switch {
	case q.Late(c.At):
		r = event.Resolution{Kind: event.ApprovalExpired, Reason: "the decision of " + c.By + " came too late", At: c.At, Command: c.ID}
	case !slices.Contains(q.Takes, r.Kind):
		return nil
	}
	return q.Resolve(r)
}

// resolution is what a command decides.
func resolution(c journal.Command) event.Resolution {
	r := event.Resolution{Kind: event.ApprovalApproved, Approver: c.By, Reason: c.Text, At: c.At, Command: c.ID, Principal: c.Principal}
	switch {
	case c.Kind == journal.Reject:
		r.Kind = event.ApprovalRejected
	case len(c.Args) > 0:
		r.Kind, r.Args = event.ApprovalEdited, c.Args
	}
	return r
}

func isDecision(c journal.Command) bool { return c.Kind == journal.Approve || c.Kind == journal.Reject }

// decidable says what stands against a decision before it is sent: a driver
// passes over one that has no place without telling whoever sent it.
func (e *Engine) decidable(ctx context.Context, c journal.Command) error {
	if !isDecision(c) {
		return nil
	}
	if len(c.Args) > 0 && !json.Valid(c.Args) {
		return fmt.Errorf("engine: send %s: the arguments for call %s are no JSON", c.Kind, c.CallID)
	}
	if nestedTooDeep(c.Args) {
		return fmt.Errorf("engine: send %s: the arguments for call %s are nested deeper than %d levels", c.Kind, c.CallID, maxNesting)
	}
	m, err := e.Inspect(ctx, c.Run)
	if err != nil {
		return err
	}
	s := m.State()
	q := pending(s, c.CallID)
	switch {
	case q == nil:
		return e.undecidable(ctx, c)
	case q.Message:
		return &MessageError{Run: c.Run, Question: *q}
	case !slices.Contains(q.Takes, resolution(c).Kind):
		return fmt.Errorf("engine: send %s: %s %s is decided by one of %s, not by %s", c.Kind, q.Kind, q.ID, inWords(q.Takes), resolution(c).Kind)
	case s.Phase == machine.Parked:
		return nil // it is decided at once, and whoever is too late is told then
	case q.Late(e.opts.Now()):
		return &DecidedError{Decision: q.Resolve(event.Resolution{Kind: event.ApprovalExpired, At: q.ExpiresAt.UTC()})}
	}
	return e.undecided(ctx, c, q)
}

// undecided says that another decision on a question was not sent before: where a
// run was left without having parked, the first one rests in its inbox until it goes on.
// What is sealed may be lost with its reader.
func (e *Engine) undecided(ctx context.Context, c journal.Command, q *event.Question) error {
	sent, err := e.store.Inbox(ctx, c.Run)
	if err != nil {
		return fmt.Errorf("engine: send %s: %w", c.Kind, err)
	}
	for _, first := range sent {
		if !isDecision(first) || first.CallID != c.CallID || first.Sealed != nil {
			continue
		}
		d := resolution(first)
		d.Reason, d.Command = "", 0
		return &DecidedError{Decision: q.Resolve(d)}
	}
	return nil
}

// undecidable says why a decision has no place.
func (e *Engine) undecidable(ctx context.Context, c journal.Command) error {
	if row, err := e.store.Run(ctx, c.Run); err == nil && row.State == journal.Ended {
		return fmt.Errorf("engine: run %s: %w", c.Run, journal.ErrEnded)
	}
	made, err := e.Decisions(ctx, c.Run, c.CallID)
	switch {
	case err != nil:
		return err
	case len(made) == 0:
		return fmt.Errorf("%w: %s", ErrNotPending, c.CallID)
	}
	return &DecidedError{Decision: made[0]}
}

// Decisions returns the decisions of a run about a question, the newest first.
func (e *Engine) Decisions(ctx context.Context, run, id string) (made []event.Resolving, err error) {
	records, err := e.store.Records(ctx, run, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("engine: decisions of run %s: %w", run, err)
	}
	for i := len(records) - 1; i >= 0; i-- {
		if !event.Type(records[i].Type).Resolves() {
			continue
		}
		ev, err := event.Decode(records[i].Body)
		if err != nil {
			return nil, fmt.Errorf("engine: run %s, event %d: %w", run, records[i].Seq, err)
		}
		if d, ok := ev.Data.(event.Resolving); ok && d.Resolution().ID == id {
			made = append(made, d)
		}
	}
	return made, nil
}

// expires reports whether an event is a decision that came too late.
func expires(data event.Data) bool {
	d, ok := data.(event.Resolving)
	return ok && d.Resolution().Kind == event.ApprovalExpired
}
