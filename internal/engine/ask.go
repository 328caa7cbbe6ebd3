package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// askEffect is the effect that waits for a person's answer to a question.
func askEffect(id string) string { return "ask:" + id }

// questions are those that are put to a person.
type questions struct {
	*core
	// asked are those that were, and how they may stay unanswered; asking is the effect
	// of the last one that is still open.
	asked  map[string]machine.Unanswered
	asking string
}

// begin puts questions to a person. Where there is none, the machine says
// whether they wait, are rejected, or park the run.
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
			if err := qs.stage(qs.env.rejection(q, "nobody can be asked here")); err != nil {
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

// awaitMessage parks a run that needs a message, where it has nothing else to do.
func (qs *questions) awaitMessage(a machine.Ask) (bool, error) {
	if a.Unanswered == machine.UnansweredWait {
		return false, nil
	}
	return true, qs.stage(event.RunParked{Reason: event.ParkInput, Detail: a.Questions[0].Reason})
}

// askOnce queues the questions that are not being asked already, and those that
// nobody answered while the run had something else to do.
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
			if _, asked := qs.asked[id]; asked && qs.effects.pending[askEffect(id)] == nil { // it may have been decided in the commit that came between
				qs.ask(work, *q, a.Unanswered)
			}
		})
	}
}

// rejection is what the engine answers in the place of somebody who cannot.
func (env *environment) rejection(q *event.Question, why string) event.Data {
	return q.Resolve(event.Resolution{Kind: event.ApprovalRejected, Approver: "nobody", Reason: why, At: env.clock.now().UTC()})
}

// expire settles the questions whose time is over and sets the alarm for the
// next that will be: nobody waits for ever.
func (qs *questions) expire(pending []*event.Question) (bool, error) {
	expired := false
	for _, q := range pending {
		at := q.ExpiresAt
		if at == nil {
			continue
		}
		if at.After(qs.env.clock.now()) {
			qs.alarm.set(*at)
			continue
		}
		expired = true
		expiry := event.Resolution{Kind: event.ApprovalExpired, Reason: "nobody decided in time", At: qs.env.clock.now().UTC()}
		if err := qs.stage(q.Resolve(expiry)); err != nil {
			return false, err
		}
	}
	return expired, nil
}

func (qs *questions) ask(work context.Context, q event.Question, unanswered machine.Unanswered) {
	ctx, cancel := context.WithCancel(work)
	// over says that nobody waits for this answer any more. Who is asked often
	// gives none because their time was up, and that is no rejection.
	over := func(ctx context.Context) bool {
		return ctx.Err() != nil || q.Late(qs.env.clock.now())
	}
	undecided := func(ctx context.Context, why string) []event.Data {
		switch {
		case over(ctx), unanswered == machine.UnansweredWait: // where it waits, somebody else's answer will do
			return nil
		case unanswered == machine.UnansweredReject:
			return []event.Data{qs.env.rejection(&q, why)}
		}
		return []event.Data{event.RunParked{Reason: event.ParkApproval, CallIDs: []string{q.ID}, Detail: why}}
	}
	qs.effects.launch(ctx, cancel, effect{
		id: askEffect(q.ID),
		do: func(ctx context.Context) []event.Data {
			answer, err := guard(func() (event.Resolution, error) {
				answer, err := qs.env.Ask(ctx, q.Clone())
				if err == nil {
					err = decided(&q, answer)
				}
				return answer, err
			}, func(message string) error { return errors.New("the asker " + message) })
			switch {
			case err != nil:
				return undecided(ctx, err.Error())
			case over(ctx):
				return nil
			}
			answer.Args = bytes.Clone(answer.Args)                  // whoever was asked may keep what they gave
			answer.At, answer.Command = qs.env.clock.now().UTC(), 0 // nobody sent it
			if answer.Remember = answer.Remember && answer.Kind == event.ApprovalApproved && q.Offer != nil; !answer.Remember {
				return []event.Data{q.Resolve(answer)}
			}
			return []event.Data{q.Resolve(answer), event.PermissionAdded{CallID: q.ID, Permission: *q.Offer, By: answer.Approver, Principal: answer.Principal}}
		},
		giveUp: func(ctx context.Context, why error) []event.Data { return undecided(ctx, why.Error()) },
	})
}

// decided says what keeps an answer from being a decision.
func decided(q *event.Question, a event.Resolution) error {
	switch {
	case a.Kind == event.ApprovalExpired:
	case !slices.Contains(q.Takes, a.Kind):
		return fmt.Errorf("the answer is %q, none of %s", a.Kind, inWords(q.Takes))
	case a.Kind == event.ApprovalEdited && !json.Valid(a.Args):
		return errors.New("the arguments of the answer are no JSON")
	case a.Kind == event.ApprovalEdited && nestedTooDeep(a.Args):
		return fmt.Errorf("the arguments of the answer are nested deeper than %d levels", maxNesting)
	}
	return nil
}

// inWords lists the ways to decide as a sentence has them.
func inWords(kinds []event.ApprovalKind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// dismiss stops asking about what has been decided elsewhere, or when
// the run has parked: the first answer from any side wins.
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

// forget lets the next question be put once the effect of a question was settled.
func (qs *questions) forget(effect string) {
	if qs.asking == effect {
		qs.asking = ""
	}
}

// pending returns the question with an id that waits for a decision, or nil.
func pending(s machine.State, id string) *event.Question {
	for _, q := range s.Pending {
		if q.ID == id {
			return q
		}
	}
	return nil
}

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
