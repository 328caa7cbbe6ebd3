package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
)

// askFlight is the flight that waits for a person's answer about a call.
func askFlight(callID string) string { return "ask:" + callID }

// beginAsk puts pending approvals to a person, or parks when there is none.
func (d *driver) beginAsk(asks []machine.Ask) (bool, error) {
	if expired, err := d.expire(asks); expired || err != nil {
		return expired, err
	}
	if d.env.Ask == nil {
		ids := make([]string, len(asks))
		for i, a := range asks {
			ids[i] = a.Approval.CallID
		}
		return true, d.stage(event.RunParked{Reason: event.ParkApproval, CallIDs: ids})
	}
	d.waiting = string(event.ParkApproval)
	for _, a := range asks {
		if d.flights[askFlight(a.Approval.CallID)] == nil && !d.asked[a.Approval.CallID] {
			d.asked[a.Approval.CallID] = true
			d.queue = append(d.queue, func(work context.Context) { d.ask(work, a.Approval) })
		}
	}
	return false, nil
}

// expire settles the approvals whose time is over and sets the alarm for the
// next that will be: nobody waits for ever (FIELD F18).
func (d *driver) expire(asks []machine.Ask) (bool, error) {
	expired := false
	for _, a := range asks {
		at := a.Approval.ExpiresAt
		if at == nil {
			continue
		}
		if at.After(d.now()) {
			d.wake(*at)
			continue
		}
		expired = true
		if err := d.stage(event.ToolApprovalResolved{
			CallID: a.Approval.CallID, Kind: event.ApprovalExpired, Digest: a.Approval.Digest,
			Reason: "nobody decided in time", At: d.now().UTC(),
		}); err != nil {
			return false, err
		}
	}
	return expired, nil
}

func (d *driver) ask(work context.Context, p event.ToolPendingApproval) {
	ctx, cancel := context.WithCancel(work)
	park := func(why string) []event.Data {
		return []event.Data{event.RunParked{Reason: event.ParkApproval, CallIDs: []string{p.CallID}, Detail: why}}
	}
	d.launch(ctx, cancel, effect{
		id: askFlight(p.CallID),
		do: func(ctx context.Context) []event.Data {
			answer, err := guard(func() (event.ToolApprovalResolved, error) {
				answer, err := d.env.Ask(ctx, p)
				if err == nil {
					err = decided(answer.Kind)
				}
				return answer, err
			}, func(message string) error { return errors.New("the asker " + message) })
			switch {
			case err == nil:
				answer.CallID, answer.Digest, answer.At = p.CallID, p.Digest, d.now().UTC()
				return []event.Data{answer}
			case ctx.Err() != nil:
				return nil // nobody waits for this answer any more
			}
			return park(err.Error())
		},
		giveUp: func(ctx context.Context, why error) []event.Data {
			if ctx.Err() != nil {
				return nil
			}
			return park(why.Error())
		},
	})
}

func decided(k event.ApprovalKind) error {
	if k != event.ApprovalApproved && k != event.ApprovalRejected {
		return fmt.Errorf("the answer is %q, neither %s nor %s", k, event.ApprovalApproved, event.ApprovalRejected)
	}
	return nil
}

// dismiss stops asking about calls that have been decided elsewhere, or when
// the run has parked: the first answer from any side wins.
func (d *driver) dismiss() {
	if len(d.asked) == 0 {
		return
	}
	s := d.machine.State()
	for id := range d.asked {
		if s.Phase != machine.Running || pending(s, id) == nil {
			delete(d.asked, id)
			if f := d.flights[askFlight(id)]; f != nil {
				f.cancel()
			}
		}
	}
}

// pending returns the open approval of a call, or nil.
func pending(s machine.State, callID string) *event.ToolPendingApproval {
	for i := range s.Pending {
		if s.Pending[i].CallID == callID {
			return &s.Pending[i]
		}
	}
	return nil
}
