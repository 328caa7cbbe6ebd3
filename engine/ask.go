package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
)

// askFlight is the flight that waits for a person's answer about a call.
func askFlight(callID string) string { return "ask:" + callID }

// beginAsk puts pending approvals to a person. Where there is none, the run's rule
// says whether they wait, are rejected, or park the run.
func (d *driver) beginAsk(a machine.Ask) (bool, error) {
	if expired, err := d.expire(a.Approvals); expired || err != nil {
		return expired, err
	}
	switch {
	case d.env.Ask != nil:
		d.askOnce(a)
	case a.Unanswered == machine.UnansweredWait:
	case a.Unanswered == machine.UnansweredReject:
		for _, p := range a.Approvals {
			if err := d.stage(d.rejection(*p, "nobody can be asked here")); err != nil {
				return false, err
			}
		}
		d.waiting = string(event.ParkApproval)
		return true, nil
	default:
		parked := event.RunParked{Reason: event.ParkApproval}
		for _, p := range a.Approvals {
			parked.CallIDs = append(parked.CallIDs, p.CallID)
		}
		return true, d.stage(parked)
	}
	d.waiting = string(event.ParkApproval)
	return false, nil
}

// askOnce queues the questions that are not being asked already.
func (d *driver) askOnce(a machine.Ask) {
	for _, p := range a.Approvals {
		if d.env.AskInTurn && d.asking != "" {
			return
		}
		id := p.CallID
		if d.asked[id] || d.flights[askFlight(id)] != nil {
			continue
		}
		d.asked[id], d.asking = true, askFlight(id)
		d.queue = append(d.queue, func(work context.Context) {
			if d.asked[id] { // it may have been decided in the commit that came between
				d.ask(work, *p, a.Unanswered)
			}
		})
	}
}

// rejection is what the engine answers in the place of somebody who cannot.
func (d *driver) rejection(p event.ToolPendingApproval, why string) event.ToolApprovalResolved {
	return event.ToolApprovalResolved{
		CallID: p.CallID, Kind: event.ApprovalRejected, Digest: p.Digest, Policy: p.Policy,
		Approver: "nobody", Reason: why, At: d.now().UTC(),
	}
}

// expire settles the approvals whose time is over and sets the alarm for the
// next that will be: nobody waits for ever (FIELD F18).
func (d *driver) expire(pending []*event.ToolPendingApproval) (bool, error) {
	expired := false
	for _, p := range pending {
		at := p.ExpiresAt
		if at == nil {
			continue
		}
		if at.After(d.now()) {
			d.wake(*at)
			continue
		}
		expired = true
		if err := d.stage(event.ToolApprovalResolved{
			CallID: p.CallID, Kind: event.ApprovalExpired, Digest: p.Digest, Policy: p.Policy,
			Reason: "nobody decided in time", At: d.now().UTC(),
		}); err != nil {
			return false, err
		}
	}
	return expired, nil
}

func (d *driver) ask(work context.Context, p event.ToolPendingApproval, unanswered machine.Unanswered) {
	ctx, cancel := context.WithCancel(work)
	// over says that nobody waits for this answer any more. Who is asked often
	// gives none because their time was up, and that is no rejection.
	over := func(ctx context.Context) bool {
		return ctx.Err() != nil || p.ExpiresAt != nil && !p.ExpiresAt.After(d.now())
	}
	undecided := func(ctx context.Context, why string) []event.Data {
		switch {
		case over(ctx), unanswered == machine.UnansweredWait: // where it waits, somebody else's answer will do
			return nil
		case unanswered == machine.UnansweredReject:
			return []event.Data{d.rejection(p, why)}
		}
		return []event.Data{event.RunParked{Reason: event.ParkApproval, CallIDs: []string{p.CallID}, Detail: why}}
	}
	d.launch(ctx, cancel, effect{
		id: askFlight(p.CallID),
		do: func(ctx context.Context) []event.Data {
			answer, err := guard(func() (event.ToolApprovalResolved, error) {
				shown := p
				shown.Args = bytes.Clone(p.Args)
				answer, err := d.env.Ask(ctx, shown)
				if err == nil {
					err = decided(answer)
				}
				return answer, err
			}, func(message string) error { return errors.New("the asker " + message) })
			switch {
			case err != nil:
				return undecided(ctx, err.Error())
			case over(ctx):
				return nil
			}
			answer.Args = bytes.Clone(answer.Args) // whoever was asked may keep what they gave
			answer.CallID, answer.Digest, answer.Policy, answer.At = p.CallID, p.Digest, p.Policy, d.now().UTC()
			return []event.Data{answer}
		},
		giveUp: func(ctx context.Context, why error) []event.Data { return undecided(ctx, why.Error()) },
	})
}

// decided says what keeps an answer from being a decision.
func decided(a event.ToolApprovalResolved) error {
	switch a.Kind {
	case event.ApprovalApproved, event.ApprovalRejected, event.ApprovalExpired:
		return nil
	case event.ApprovalEdited:
		if !json.Valid(a.Args) {
			return errors.New("the arguments of the answer are no JSON")
		}
		if nestedTooDeep(a.Args) {
			return fmt.Errorf("the arguments of the answer are nested deeper than %d levels", maxNesting)
		}
		return nil
	}
	return fmt.Errorf("the answer is %q, none of %s, %s and %s", a.Kind,
		event.ApprovalApproved, event.ApprovalRejected, event.ApprovalEdited)
}

// dismiss stops asking about calls that have been decided elsewhere, or when
// the run has parked: the first answer from any side wins. The run above is not
// asked any more either by a run that has parked.
func (d *driver) dismiss() {
	if f := d.flights[reserveFlight]; f != nil && d.machine.State().Phase != machine.Running {
		f.cancel()
	}
	if len(d.asked) == 0 {
		return
	}
	s := d.machine.State()
	for id := range d.asked {
		if s.Phase != machine.Running || pending(s, id) == nil {
			delete(d.asked, id)
			if f := d.flights[askFlight(id)]; f != nil {
				f.cancel()
			} else {
				d.unask(askFlight(id))
			}
		}
	}
}

// unask lets the next call be asked about once the flight of a question has
// landed.
func (d *driver) unask(flight string) {
	if d.asking == flight {
		d.asking = ""
	}
}

// pending returns the open approval of a call, or nil.
func pending(s machine.State, callID string) *event.ToolPendingApproval {
	for _, p := range s.Pending {
		if p.CallID == callID {
			return p
		}
	}
	return nil
}
