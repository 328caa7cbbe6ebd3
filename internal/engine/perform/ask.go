package perform

import (
	"bytes"
	"context"
	"errors"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
)

// Rejection is the engine's answer where no person can answer.
func (p *Performer) Rejection(q *event.Question, why string) event.Data {
	return q.Resolve(event.Resolution{Kind: event.ApprovalRejected, Approver: "nobody", Reason: why, At: p.Clock.Now().UTC()})
}

// question is a question to a person.
type question struct {
	*Performer
	q          event.Question
	unanswered machine.Unanswered
}

// AskPerson returns the effect that puts a question to a person.
func (p *Performer) AskPerson(q event.Question, unanswered machine.Unanswered) Effect {
	return Effect{Work: &question{Performer: p, q: q, unanswered: unanswered}}
}

// Do implements [Work].
func (w *question) Do(ctx context.Context) []event.Data {
	q := &w.q
	answer, err := Guard(func() (event.Resolution, error) {
		answer, err := w.Ask(ctx, q.Clone())
		if err == nil {
			err = drive.CheckDecision(q, answer)
		}
		return answer, err
	}, func(message string) error { return errors.New("the asker " + message) })
	switch {
	case err != nil:
		return w.undecided(ctx, err.Error())
	case w.over(ctx):
		return nil
	}
	answer.Args = bytes.Clone(answer.Args)             // the callback may keep its slice
	answer.At, answer.Command = w.Clock.Now().UTC(), 0 // no command carried it
	return q.Decide(answer)
}

// GiveUp implements [Work].
func (w *question) GiveUp(ctx context.Context, why error) []event.Data {
	return w.undecided(ctx, why.Error())
}

// over reports whether the answer no longer matters. A missing answer usually
// means that the question expired; that is not a rejection.
func (w *question) over(ctx context.Context) bool {
	return ctx.Err() != nil || w.q.Late(w.Clock.Now())
}

// undecided returns what follows if there is no answer.
func (w *question) undecided(ctx context.Context, why string) []event.Data {
	switch {
	case w.over(ctx), w.unanswered == machine.UnansweredWait: // the question waits for an answer from elsewhere
		return nil
	case w.unanswered == machine.UnansweredReject:
		return []event.Data{w.Rejection(&w.q, why)}
	}
	return []event.Data{event.RunParked{Reason: event.ParkApproval, CallIDs: []string{w.q.ID}, Detail: why}}
}
