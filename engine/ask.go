package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
)

// askEffect is the effect that waits for a person's answer to a question.
func askEffect(id string) string { return "ask:" + id }

// beginAsk puts questions to a person. Where there is none, the machine says
// whether they wait, are rejected, or park the run.
func (d *driver) beginAsk(a machine.Ask) (bool, error) {
	if expired, err := d.expire(a.Questions); expired || err != nil {
		return expired, err
	}
	if slices.ContainsFunc(a.Questions, func(q *event.Question) bool { return q.Message }) {
		return d.awaitMessage(a)
	}
	switch {
	case d.env.Ask != nil:
		d.askOnce(a)
	case a.Unanswered == machine.UnansweredWait:
	case a.Unanswered == machine.UnansweredReject:
		for _, q := range a.Questions {
			if err := d.stage(d.env.rejection(q, "nobody can be asked here")); err != nil {
				return false, err
			}
		}
		return true, nil
	default:
		parked := event.RunParked{Reason: event.ParkApproval}
		for _, q := range a.Questions {
			parked.CallIDs = append(parked.CallIDs, q.ID)
		}
		return true, d.stage(parked)
	}
	return false, nil
}

// awaitMessage parks a run that needs a message, where it has nothing else to do.
func (d *driver) awaitMessage(a machine.Ask) (bool, error) {
	if a.Unanswered == machine.UnansweredWait {
		return false, nil
	}
	return true, d.stage(event.RunParked{Reason: event.ParkInput, Detail: a.Questions[0].Reason})
}

// askOnce queues the questions that are not being asked already, and those that
// nobody answered while the run had something else to do.
func (d *driver) askOnce(a machine.Ask) {
	for _, q := range a.Questions {
		if d.env.AskInTurn && d.asking != "" {
			return
		}
		id := q.ID
		if was, asked := d.asked[id]; asked && was == a.Unanswered || d.effects.pending[askEffect(id)] != nil {
			continue
		}
		d.asked[id], d.asking = a.Unanswered, askEffect(id)
		d.effects.add(func(work context.Context) {
			if _, asked := d.asked[id]; asked && d.effects.pending[askEffect(id)] == nil { // it may have been decided in the commit that came between
				d.ask(work, *q, a.Unanswered)
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
func (d *driver) expire(pending []*event.Question) (bool, error) {
	expired := false
	for _, q := range pending {
		at := q.ExpiresAt
		if at == nil {
			continue
		}
		if at.After(d.env.clock.now()) {
			d.alarm.set(*at)
			continue
		}
		expired = true
		expiry := event.Resolution{Kind: event.ApprovalExpired, Reason: "nobody decided in time", At: d.env.clock.now().UTC()}
		if err := d.stage(q.Resolve(expiry)); err != nil {
			return false, err
		}
	}
	return expired, nil
}

func (d *driver) ask(work context.Context, q event.Question, unanswered machine.Unanswered) {
	ctx, cancel := context.WithCancel(work)
	// over says that nobody waits for this answer any more. Who is asked often
	// gives none because their time was up, and that is no rejection.
	over := func(ctx context.Context) bool {
		return ctx.Err() != nil || q.Late(d.env.clock.now())
	}
	undecided := func(ctx context.Context, why string) []event.Data {
		switch {
		case over(ctx), unanswered == machine.UnansweredWait: // where it waits, somebody else's answer will do
			return nil
		case unanswered == machine.UnansweredReject:
			return []event.Data{d.env.rejection(&q, why)}
		}
		return []event.Data{event.RunParked{Reason: event.ParkApproval, CallIDs: []string{q.ID}, Detail: why}}
	}
	d.effects.launch(ctx, cancel, effect{
		id: askEffect(q.ID),
		do: func(ctx context.Context) []event.Data {
			answer, err := guard(func() (event.Resolution, error) {
				answer, err := d.env.Ask(ctx, q.Clone())
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
			answer.Args = bytes.Clone(answer.Args)                 // whoever was asked may keep what they gave
			answer.At, answer.Command = d.env.clock.now().UTC(), 0 // nobody sent it
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
// the run has parked: the first answer from any side wins. The run above is not
// asked any more either by a run that has parked.
func (d *driver) dismiss() {
	if f := d.effects.pending[reserveEffect]; f != nil && d.machine.State().Phase != machine.Running {
		f.cancel()
	}
	if len(d.asked) == 0 {
		return
	}
	s := d.machine.State()
	for id := range d.asked {
		if s.Phase != machine.Running || pending(s, id) == nil {
			delete(d.asked, id)
			if f := d.effects.pending[askEffect(id)]; f != nil {
				f.cancel()
			} else {
				d.unask(askEffect(id))
			}
		}
	}
}

// unask lets the next question be put once the effect of a question has
// landed.
func (d *driver) unask(effect string) {
	if d.asking == effect {
		d.asking = ""
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
