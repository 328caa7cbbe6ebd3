package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/machine"
)

// ErrNotPending is returned for a decision on a call that waits for none.
var ErrNotPending = errors.New("engine: no such call waits for a decision")

// DecidedError is returned for a decision that comes after another one, or
// after the time for it was over. It is an [ErrNotPending].
type DecidedError struct {
	// Decision is the one that counts.
	Decision event.ToolApprovalResolved
}

// Error says what was decided, by whom and when.
func (e *DecidedError) Error() string {
	d := e.Decision
	at := d.At.Format(time.RFC3339)
	if d.Kind == event.ApprovalExpired {
		return fmt.Sprintf("call %s is already resolved: nobody decided in time, so it expired at %s", d.CallID, at)
	}
	return fmt.Sprintf("call %s is already resolved: %s by %s at %s", d.CallID, d.Kind, d.Approver, at)
}

// Is says that the call does not wait any more.
func (e *DecidedError) Is(target error) bool { return target == ErrNotPending }

// decision is what a command says of a pending call: nil when the call does not
// wait for it, and its expiry when it comes too late, by the time at which it
// was sent.
func (d *driver) decision(c journal.Command) event.Data {
	p := pending(d.machine.State(), c.CallID)
	if p == nil {
		return nil
	}
	r := event.ToolApprovalResolved{
		CallID: p.CallID, Kind: event.ApprovalApproved, Digest: p.Digest, Policy: p.Policy,
		Approver: c.By, Reason: c.Text, At: c.At,
	}
	switch {
	case p.ExpiresAt != nil && !c.At.Before(*p.ExpiresAt):
		r.Kind, r.Approver, r.Reason = event.ApprovalExpired, "", "the decision of "+c.By+" came too late"
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
	p := pending(s, c.CallID)
	switch {
	case p == nil:
		return e.undecidable(ctx, c)
	case s.Phase == machine.Parked:
		return nil // it is decided at once, and whoever is too late hears of it then
	case p.ExpiresAt != nil && !p.ExpiresAt.After(e.opts.Now()):
		return &DecidedError{Decision: event.ToolApprovalResolved{
			CallID: p.CallID, Kind: event.ApprovalExpired, Digest: p.Digest, Policy: p.Policy, At: p.ExpiresAt.UTC(),
		}}
	}
	return e.undecided(ctx, c, p)
}

// undecided says that another decision on a call was not sent before: where a
// run was left in mid-flight, the first one rests in its inbox until it goes on.
// What is sealed may be lost with its reader.
func (e *Engine) undecided(ctx context.Context, c journal.Command, p *event.ToolPendingApproval) error {
	sent, err := e.store.Inbox(ctx, c.Run)
	if err != nil {
		return fmt.Errorf("engine: send %s: %w", c.Kind, err)
	}
	for _, first := range sent {
		if !isDecision(first) || first.CallID != c.CallID || first.Sealed != nil {
			continue
		}
		d := event.ToolApprovalResolved{
			CallID: p.CallID, Kind: event.ApprovalApproved, Digest: p.Digest, Policy: p.Policy, Approver: first.By, At: first.At,
		}
		switch {
		case first.Kind == journal.Reject:
			d.Kind = event.ApprovalRejected
		case len(first.Args) > 0:
			d.Kind, d.Args = event.ApprovalEdited, first.Args
		}
		return &DecidedError{Decision: d}
	}
	return nil
}

// undecidable says why a decision has no place.
func (e *Engine) undecidable(ctx context.Context, c journal.Command) error {
	if row, err := e.store.Run(ctx, c.Run); err == nil && row.State == journal.Ended {
		return fmt.Errorf("engine: run %s: %w", c.Run, journal.ErrEnded)
	}
	d, err := e.Decision(ctx, c.Run, c.CallID)
	switch {
	case err != nil:
		return err
	case d == nil:
		return fmt.Errorf("%w: %s", ErrNotPending, c.CallID)
	}
	return &DecidedError{Decision: *d}
}

// Decision returns the newest decision on a call, or nil when there is none.
func (e *Engine) Decision(ctx context.Context, run, callID string) (*event.ToolApprovalResolved, error) {
	records, err := e.store.Records(ctx, run, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("engine: decisions of run %s: %w", run, err)
	}
	for i := len(records) - 1; i >= 0; i-- {
		if records[i].Type != string(event.TypeToolApprovalResolved) {
			continue
		}
		ev, err := event.Decode(records[i].Body)
		if err != nil {
			return nil, fmt.Errorf("engine: run %s, event %d: %w", run, records[i].Seq, err)
		}
		if d, ok := ev.Data.(event.ToolApprovalResolved); ok && d.CallID == callID {
			return &d, nil
		}
	}
	return nil, nil
}

// expires says that an event is a decision that came too late.
func expires(data event.Data) bool {
	d, ok := data.(event.ToolApprovalResolved)
	return ok && d.Kind == event.ApprovalExpired
}
