package control

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// Standing is a run as lists show it.
type Standing struct {
	journal.Run
	// Answered says that a run which parked for decisions, a message or a limit has
	// got what it waits for, also where runs that it started wait for it: it only
	// has to be gone on with.
	Answered bool `json:"answered,omitempty"`
}

// Standings are rows with what they do not say. A run that cannot be read stays
// listed as its row has it.
func (d *Desk) Standings(ctx context.Context, rows []journal.Run) ([]Standing, error) {
	all := make([]Standing, len(rows))
	for i, r := range rows {
		answered, err := d.Answered(ctx, r)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		all[i] = Standing{Run: r, Answered: answered}
	}
	return all, nil
}

// Answered is [Standing].Answered of one run. A list asks it of many runs, so no
// more is read of each than its last cycle.
func (d *Desk) Answered(ctx context.Context, r journal.Run) (bool, error) {
	if r.State != journal.Parked || r.Detail != string(event.ParkApproval) && r.Detail != string(event.ParkInput) {
		return false, nil
	}
	waits, err := d.waits(ctx, r)
	return err == nil && !waits, err
}

// waits says that a run that has not ended, or one that it started, has not been
// told what it waits for. One that it started and that cannot be read is left
// out, as in [Desk.Pending].
func (d *Desk) waits(ctx context.Context, r journal.Run) (bool, error) {
	children, err := d.children(ctx, r.ID)
	if err != nil {
		return false, err
	}
	s, err := d.standstill(ctx, r)
	if err != nil || s.undecided {
		return true, err
	}
	if r.State == journal.Parked && r.Detail == string(event.ParkInput) {
		told, err := d.told(ctx, r, s, len(children) > 0)
		if err != nil || !told {
			return true, err
		}
	}
	for _, child := range children {
		waits, err := d.waits(ctx, child)
		if err != nil && ctx.Err() != nil || err == nil && waits {
			return true, err
		}
	}
	return false, nil
}

// told says that a run which parked for a message or a limit has got it. What
// one parked for whose children ask is said to them.
func (d *Desk) told(ctx context.Context, r journal.Run, s standstill, childrenAsk bool) (bool, error) {
	switch {
	case s.parked.ParentLimit != "":
		above, err := d.store.Run(ctx, r.Parent)
		if err != nil {
			return false, fmt.Errorf("control: the run that started run %s: %w", r.ID, err)
		}
		parent, err := d.standstill(ctx, above)
		return parent.raised[s.parked.ParentLimit], err
	case s.parked.Limit != "":
		return s.raised[s.parked.Limit], nil
	}
	return s.message || childrenAsk, nil
}

// standstill is what a run waits for, and what it was told since it parked.
type standstill struct {
	parked event.RunParked
	// undecided says that a call waits for a decision.
	undecided bool
	message   bool
	raised    map[string]bool
	// decided are the calls that wait for no decision any more.
	decided map[string]bool
}

// standstill reads a run backwards, no further than it must.
func (d *Desk) standstill(ctx context.Context, r journal.Run) (standstill, error) {
	s := standstill{raised: map[string]bool{}, decided: map[string]bool{}}
	sent, err := d.store.Inbox(ctx, r.ID)
	if err != nil {
		return s, fmt.Errorf("control: inbox of run %s: %w", r.ID, err)
	}
	for _, c := range sent {
		s.sent(c)
	}
	for size, upTo := int64(1), r.Seq; upTo > 0; size, upTo = 4*size, upTo-size {
		from := max(upTo-size, 0)
		records, err := d.store.Records(ctx, r.ID, from, int(upTo-from))
		if err != nil {
			return s, fmt.Errorf("control: last events of run %s: %w", r.ID, err)
		}
		for i := len(records) - 1; i >= 0; i-- {
			whole, err := s.before(records[i])
			if err != nil {
				return s, fmt.Errorf("control: run %s, event %d: %w", r.ID, records[i].Seq, err)
			}
			if whole {
				return s, nil
			}
		}
	}
	return s, nil
}

// sent adds a command that nobody has taken up. What is sealed may be lost with
// its reader.
func (s *standstill) sent(c journal.Command) {
	switch {
	case c.Sealed != nil:
	case c.Kind == journal.Input:
		s.message = true
	case c.Kind == journal.Raise:
		s.raised[c.Setting] = true
	case c.Kind == journal.Approve, c.Kind == journal.Reject:
		s.decided[c.CallID] = true
	}
}

// before adds the event before those that were added, and says whether the ones
// before it change nothing any more. Calls belong to their cycle.
func (s *standstill) before(r journal.Record) (whole bool, err error) {
	switch event.Type(r.Type) {
	case event.TypeCycleStart, event.TypeRunForked:
		return true, nil
	case event.TypeRunParked, event.TypeInputReceived, event.TypeBudgetRaised,
		event.TypeToolPendingApproval, event.TypeToolApprovalResolved, event.TypeToolResult:
	default:
		return false, nil
	}
	e, err := event.Decode(r.Body)
	if err != nil {
		return false, err
	}
	sinceParked := s.parked.Reason == ""
	switch e := e.Data.(type) {
	case event.RunParked:
		if sinceParked {
			s.parked = e
		}
		s.asked(e.CallIDs...)
	case event.InputReceived:
		s.message = s.message || sinceParked
	case event.BudgetRaised:
		s.raised[e.Setting] = s.raised[e.Setting] || sinceParked
	case event.ToolPendingApproval:
		s.asked(e.CallID)
	case event.ToolApprovalResolved:
		s.decided[e.CallID] = true
	case event.ToolResult:
		s.decided[e.CallID] = true
	}
	return s.undecided || s.parked.Reason == event.ParkInput, nil
}

func (s *standstill) asked(calls ...string) {
	for _, c := range calls {
		s.undecided = s.undecided || !s.decided[c]
	}
}
