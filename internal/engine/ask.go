package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// askEffect is the id of the effect that waits for the answer to a question.
func askEffect(id string) string { return "ask:" + id }

// questions holds the questions that the run puts to a person.
type questions struct {
	*core
	// asked maps the questions that were asked to what happens without an answer;
	// asking is the effect of the latest one that is still open.
	asked  map[string]machine.Unanswered
	asking string
}

// begin puts questions to a person. If there is none here, the machine's action
// says whether the questions wait, are rejected, or park the run.
func (qs *questions) begin(a machine.Ask) (bool, error) {
	if expired, err := qs.expire(a.Questions); expired || err != nil {
		return expired, err
	}
	if slices.ContainsFunc(a.Questions, func(q *event.Question) bool { return q.Message }) {
		return qs.awaitMessage(a)
	}
	switch {
	case qs.env.Ask != nil:
		qs.askOnce(a)
	case a.Unanswered == machine.UnansweredWait:
	case a.Unanswered == machine.UnansweredReject:
		for _, q := range a.Questions {
			if err := qs.stage(qs.env.Rejection(q, "nobody can be asked here")); err != nil {
				return false, err
			}
		}
		return true, nil
	default:
		parked := event.RunParked{Reason: event.ParkApproval}
		for _, q := range a.Questions {
			parked.CallIDs = append(parked.CallIDs, q.ID)
		}
		return true, qs.stage(parked)
	}
	return false, nil
}

// awaitMessage parks a run that needs a message, if it has nothing else to do.
func (qs *questions) awaitMessage(a machine.Ask) (bool, error) {
	if a.Unanswered == machine.UnansweredWait {
		return false, nil
	}
	return true, qs.stage(event.RunParked{Reason: event.ParkInput, Detail: a.Questions[0].Reason})
}

// askOnce queues the questions that are not under way, including those that got
// no answer while the run had something else to do.
func (qs *questions) askOnce(a machine.Ask) {
	for _, q := range a.Questions {
		if qs.env.AskInTurn && qs.asking != "" {
			return
		}
		id := q.ID
		if was, asked := qs.asked[id]; asked && was == a.Unanswered || qs.effects.pending[askEffect(id)] != nil {
			continue
		}
		qs.asked[id], qs.asking = a.Unanswered, askEffect(id)
		qs.effects.add(func(work context.Context) {
			if _, asked := qs.asked[id]; asked && qs.effects.pending[askEffect(id)] == nil { // the last commit may contain a decision
				qs.effects.launch(work, effect{id: askEffect(id), Effect: qs.env.AskPerson(*q, a.Unanswered), untimed: true}) // a person's time is not the run's
			}
		})
	}
}

// expire settles the questions whose time is over and sets the alarm for the
// next one.
func (qs *questions) expire(pending []*event.Question) (bool, error) {
	expired := false
	for _, q := range pending {
		at := q.ExpiresAt
		if at == nil {
			continue
		}
		if at.After(qs.env.Clock.Now()) {
			qs.alarm.set(*at)
			continue
		}
		expired = true
		expiry := event.Resolution{Kind: event.ApprovalExpired, Reason: "nobody decided in time", At: qs.env.Clock.Now().UTC()}
		if err := qs.stage(q.Resolve(expiry)); err != nil {
			return false, err
		}
	}
	return expired, nil
}

// dismiss withdraws questions that were decided elsewhere, or all of them when
// the run has parked: the first answer wins.
func (qs *questions) dismiss() {
	if len(qs.asked) == 0 {
		return
	}
	s := qs.machine.State()
	for id := range qs.asked {
		if s.Phase != machine.Running || pending(s, id) == nil {
			delete(qs.asked, id)
			if !qs.effects.stop(askEffect(id)) {
				qs.forget(askEffect(id))
			}
		}
	}
}

// forget allows the next question after the effect of a question has settled.
func (qs *questions) forget(effect string) {
	if qs.asking == effect {
		qs.asking = ""
	}
}

// pending returns the open question with an id, or nil.
func pending(s machine.State, id string) *event.Question {
	for _, q := range s.Pending {
		if q.ID == id {
			return q
		}
	}
	return nil
}

// ErrNotPending is returned for a decision on something that does not wait for
// one.
var ErrNotPending = errors.New("engine: no such call waits for a decision")

// DecidedError is returned for a decision that comes after another one or after
// the question's expiry. It is an [ErrNotPending].
type DecidedError struct {
	// Decision is the one that counts.
	Decision event.Resolving
}

// Error describes the decision: what, by whom and when.
func (e *DecidedError) Error() string {
	d := e.Decision.Resolution()
	at := d.At.Format(time.RFC3339)
	if d.Kind == event.ApprovalExpired {
		return fmt.Sprintf("%s %s is already resolved: it got no decision in time, so it expired at %s", d.Of, d.ID, at)
	}
	return fmt.Sprintf("%s %s is already resolved: %s by %s at %s", d.Of, d.ID, d.Kind, d.Approver, at)
}

// Is reports whether nothing waits for a decision any more.
func (e *DecidedError) Is(target error) bool { return target == ErrNotPending }

// MessageError is returned for a decision on a question that only a message
// answers.
type MessageError struct {
	Run      string
	Question event.Question
}

// Error says what answers the question.
func (e *MessageError) Error() string {
	return fmt.Sprintf("engine: the %s question %s of run %s is neither approved nor rejected: an input to that run answers it", e.Question.Kind, e.Question.ID, e.Run)
}

// Is reports whether target is [ErrNotPending].
func (e *MessageError) Is(target error) bool { return target == ErrNotPending }

// decision returns the events that a command becomes. There are none if the question
// does not wait for it, and the question's expiry if the command was sent too late.
func decision(c journal.Command, s machine.State) []event.Data {
	q := pending(s, c.CallID)
	if q == nil {
		return nil
	}
	r := resolution(c, q)
	switch {
	case q.Late(c.At):
		r = event.Resolution{Kind: event.ApprovalExpired, Reason: "the decision of " + c.By + " came too late", At: c.At, Command: c.ID}
	case drive.CheckDecision(q, r) != nil:
		return nil
	}
	return q.Decide(r)
}

// resolution is the decision in a command on a question.
func resolution(c journal.Command, q *event.Question) event.Resolution {
	r := event.Resolution{Kind: event.ApprovalApproved, Approver: c.By, Reason: c.Text, At: c.At, Remember: c.Remember, Command: c.ID, Principal: c.Principal}
	switch {
	case c.Kind == journal.Reject:
		r.Kind = event.ApprovalRejected
	case q.Kind == event.QuestionForm:
		r.Kind, r.Args = event.ApprovalAnswered, c.Args
		if len(r.Args) == 0 {
			r.Args = json.RawMessage("{}")
		}
	case len(c.Args) > 0:
		r.Kind, r.Args = event.ApprovalEdited, c.Args
	}
	return r
}

func isDecision(c journal.Command) bool { return c.Kind == journal.Approve || c.Kind == journal.Reject }

// decidable returns an error for a decision that has no place, before it is
// sent: a driver ignores such a decision without a reply to its sender.
func (e *Engine) decidable(ctx context.Context, c journal.Command) error {
	if !isDecision(c) {
		return nil
	}
	if len(c.Args) > 0 && !json.Valid(c.Args) {
		return fmt.Errorf("engine: send %s: the arguments for call %s are no JSON", c.Kind, c.CallID)
	}
	if drive.NestedTooDeep(c.Args) {
		return fmt.Errorf("engine: send %s: the arguments for call %s are nested deeper than %d levels", c.Kind, c.CallID, drive.MaxNesting)
	}
	row, err := e.store.Run(ctx, c.Run)
	if err != nil {
		return fmt.Errorf("engine: send %s: %w", c.Kind, err)
	}
	q, err := e.Past().Question(ctx, row, c.CallID)
	switch {
	case err != nil:
		return fmt.Errorf("engine: send %s: %w", c.Kind, err)
	case q == nil:
		return e.undecidable(ctx, c)
	case q.Message:
		return &MessageError{Run: c.Run, Question: *q}
	case !slices.Contains(q.Takes, resolution(c, q).Kind):
		return fmt.Errorf("engine: send %s: %s %s is decided by one of %s, not by %s", c.Kind, q.Kind, q.ID, drive.InWords(q.Takes), resolution(c, q).Kind)
	case drive.CheckDecision(q, resolution(c, q)) != nil:
		return fmt.Errorf("engine: send %s: %w", c.Kind, drive.CheckDecision(q, resolution(c, q)))
	case row.State == journal.Parked, row.State == journal.Paused:
		return nil // the decision is applied at once, and a late one fails then
	case q.Late(e.opts.Now()):
		return &DecidedError{Decision: q.Resolve(event.Resolution{Kind: event.ApprovalExpired, At: q.ExpiresAt.UTC()})}
	}
	return e.undecided(ctx, c, q)
}

// undecided returns an error if the inbox already contains a decision on the
// question. If a driver left without parking the run, the decision stays in the
// inbox until the run resumes. Sealed commands do not count, because they may be
// lost with the process that can read them.
func (e *Engine) undecided(ctx context.Context, c journal.Command, q *event.Question) error {
	sent, err := e.store.Inbox(ctx, c.Run)
	if err != nil {
		return fmt.Errorf("engine: send %s: %w", c.Kind, err)
	}
	for _, first := range sent {
		if !isDecision(first) || first.CallID != c.CallID || first.Sealed != nil {
			continue
		}
		d := resolution(first, q)
		d.Reason, d.Command = "", 0
		return &DecidedError{Decision: q.Resolve(d)}
	}
	return nil
}

// undecidable returns why a decision has no place.
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

// Decisions returns the decisions of a run about a question, newest first.
func (e *Engine) Decisions(ctx context.Context, run, id string) (made []event.Resolving, err error) {
	for ev, err := range drive.Since(ctx, e.store, run, 0, event.Type.Resolves) {
		if err != nil {
			return nil, fmt.Errorf("engine: decisions of run %s: %w", run, err)
		}
		if d, ok := ev.Data.(event.Resolving); ok && d.Resolution().ID == id {
			made = append(made, d)
		}
	}
	slices.Reverse(made)
	return made, nil
}

// expires reports whether an event is an expiry.
func expires(data event.Data) bool {
	d, ok := data.(event.Resolving)
	return ok && d.Resolution().Kind == event.ApprovalExpired
}
