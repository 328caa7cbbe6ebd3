package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal"
)

// RunStatus is the state of a run as lists show it.
type RunStatus struct {
	journal.Run
	// Answered reports that a parked run has received the decisions, the message or
	// the limit that it or a run below it waited for: it only has to be resumed.
	Answered bool `json:"answered,omitempty"`
	// Expired reports that the time for the decision that a parked run waited for
	// has passed: it only has to be resumed.
	Expired bool `json:"expired,omitempty"`
	// Pausing reports whether a running run has received a pause. It parks when its
	// calls in progress have ended.
	Pausing bool `json:"pausing,omitempty"`
	// Undriven reports that a run's process ended without parking it. The run can
	// be resumed.
	Undriven bool `json:"undriven,omitempty"`
	// Worker is the host that drives the run, if several machines share the journal.
	Worker string `json:"worker,omitempty"`
}

// drivers returns the hosts of the processes that drive runs, by the owners of leases, and
// why none of them has taken a queued run, "" if one may do so at any moment.
func (d *Controller) drivers(ctx context.Context) (hosts map[string]string, queued string, err error) {
	keeps, may := d.store.(journal.KeepsDrivers)
	if !may {
		return nil, "", nil
	}
	live, err := keeps.Drivers(ctx)
	hosts, queued = make(map[string]string, len(live)), "no worker has room"
	for _, driver := range live {
		hosts[driver.Owner] = driver.Host
		if !driver.Full {
			queued = ""
		}
	}
	if len(live) == 0 {
		queued = "no worker is there"
	}
	return hosts, queued, err
}

// RunStatuses adds to rows what they do not contain. It reads only the last cycle
// of each run. A run that cannot be read is listed as its row has it.
func (d *Controller) RunStatuses(ctx context.Context, rows []journal.Run) ([]RunStatus, error) {
	all := make([]RunStatus, len(rows))
	hosts, queued, err := d.drivers(ctx)
	if err != nil {
		return nil, err
	}
	l := reading{Controller: d, now: time.Now()}
	var parked, driven []*RunStatus
	for i, r := range rows {
		all[i].Run, all[i].Worker = r, hosts[r.Owner]
		going := r.State == journal.Running || r.State == journal.Waiting
		all[i].Undriven = going && !Alive(r, l.now)
		switch {
		case parkedFor(r, event.ParkApproval) || parkedFor(r, event.ParkInput):
			parked = append(parked, &all[i])
		case r.State == journal.Queued && r.Owner == "" && r.Parent == "" && r.ForkOf == "":
			all[i].Detail = cmp.Or(r.Detail, queued)
		case going && Driven(r, l.now):
			driven = append(driven, &all[i])
		}
	}
	if len(parked)+len(driven) > 1 {
		l.readInboxes(ctx)
	}
	for _, s := range driven {
		pausing, err := l.pausing(ctx, s.Run)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		s.Pausing = err == nil && pausing
	}
	for _, s := range parked {
		h, err := l.needs(ctx, s.Run)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		s.Answered, s.Expired = err == nil && h == none, err == nil && h == expired
	}
	return all, nil
}

// RunStatus is [Controller.RunStatuses] for one run.
func (d *Controller) RunStatus(ctx context.Context, r journal.Run) (RunStatus, error) {
	all, err := d.RunStatuses(ctx, []journal.Run{r})
	if err != nil {
		return RunStatus{Run: r}, err
	}
	return all[0], nil
}

// pausing reports whether a pause was sent to a run that is driven. No cycle
// begins after a pause, and a resume voids it.
func (l reading) pausing(ctx context.Context, r journal.Run) (bool, error) {
	sent, err := l.inbox(ctx, r.ID)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(sent, func(c journal.Command) bool { return c.Kind == journal.Pause }) {
		return true, nil
	}
	for e, err := range drive.Backwards(ctx, l.store, r, drive.OneOf(event.TypePauseRequested, event.TypeCycleStart, event.TypeRunResumed, event.TypeRunForked)) {
		if err != nil {
			return false, fmt.Errorf("control: %w", err)
		}
		return e.Type() == event.TypePauseRequested, nil
	}
	return false, nil
}

func parkedFor(r journal.Run, reason event.ParkReason) bool {
	return r.State == journal.Parked && r.Detail == string(reason)
}

// reading is one reading of the state of runs.
type reading struct {
	*Controller
	now time.Time
	// inboxes holds the commands to each run that are not taken, nil if each run's
	// inbox is read by itself.
	inboxes map[string][]journal.Command
}

// readInboxes reads the inboxes of all runs at once, unless one of them is
// damaged.
func (l *reading) readInboxes(ctx context.Context) {
	sent, err := l.store.Inbox(ctx, "")
	if err != nil {
		return
	}
	l.inboxes = map[string][]journal.Command{}
	for _, c := range sent {
		l.inboxes[c.Run] = append(l.inboxes[c.Run], c)
	}
}

func (l reading) inbox(ctx context.Context, run string) ([]journal.Command, error) {
	if l.inboxes != nil {
		return l.inboxes[run], nil
	}
	sent, err := l.store.Inbox(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("control: inbox of run %s: %w", run, err)
	}
	return sent, nil
}

// need is what a run waits for.
type need uint8

const (
	// none: the run waits for nothing.
	none need = iota
	// expired: the time for a decision is over.
	expired
	waits
)

// needs returns what a run that has not ended waits for, in itself or in a run
// below it. A run below that cannot be read is left out, as in
// [Controller.Pending].
func (l reading) needs(ctx context.Context, r journal.Run) (need, error) {
	w, err := l.past.Waits(ctx, r)
	if err != nil {
		return waits, fmt.Errorf("control: %w", err)
	}
	sent, err := l.inbox(ctx, r.ID)
	if err != nil {
		return waits, err
	}
	most := none
	if w.Expired {
		most = expired
	}
	for _, q := range w.Questions {
		at, decided := sentAt(sent, q.ID)
		if !decided {
			at = l.now
		}
		switch late := q.ExpiresAt != nil && !at.Before(*q.ExpiresAt); {
		case late:
			most = expired
		case !q.Message && !decided:
			return waits, nil
		}
	}
	children, err := l.children(ctx, r, w)
	if err != nil {
		return waits, err
	}
	if parkedFor(r, event.ParkInput) && w.Parked != nil {
		received, err := l.received(ctx, r, w, sent)
		if err != nil || !received && (w.Refused || w.Parked.Limit != "" || len(children) == 0) {
			return waits, err
		}
	}
	for _, id := range children {
		h, err := l.childNeeds(ctx, id)
		if err != nil && ctx.Err() != nil {
			return waits, err
		}
		if err == nil {
			most = max(most, h)
		}
		if most == waits {
			break
		}
	}
	return most, nil
}

// children returns the runs that a run started and that have not ended. The row of a run
// that is not parked does not name them.
func (l reading) children(ctx context.Context, r journal.Run, w *journal.Waits) ([]string, error) {
	if w.Parked != nil {
		return w.Children, nil
	}
	rows, err := l.store.Runs(ctx, journal.Filter{Parent: r.ID})
	if err != nil {
		return nil, fmt.Errorf("control: runs below run %s: %w", r.ID, err)
	}
	var open []string
	for _, child := range rows {
		if child.State != journal.Ended {
			open = append(open, child.ID)
		}
	}
	return open, nil
}

func (l reading) childNeeds(ctx context.Context, id string) (need, error) {
	child, err := l.store.Run(ctx, id)
	if err != nil || child.State == journal.Ended {
		return none, err
	}
	return l.needs(ctx, child)
}

// received reports whether a run that parked for a message or a limit has received
// it.
func (l reading) received(ctx context.Context, r journal.Run, w *journal.Waits, sent []journal.Command) (bool, error) {
	switch p := w.Parked; {
	case p.ParentLimit != "":
		above, err := l.store.Run(ctx, cmp.Or(p.LimitRun, r.Parent))
		if err != nil {
			return false, fmt.Errorf("control: a run above run %s: %w", r.ID, err)
		}
		aboves, err := l.past.Waits(ctx, above)
		if err != nil {
			return false, fmt.Errorf("control: %w", err)
		}
		sent, err := l.inbox(ctx, above.ID)
		return enough(p, p.ParentLimit, aboves, sent), err
	case p.Limit != "":
		return enough(p, p.Limit, w, sent), nil
	}
	return w.Message || slices.ContainsFunc(sent, func(c journal.Command) bool { return c.Kind == journal.Input && c.Sealed == nil }), nil
}

// enough reports whether a limit of a run was raised to the value that a parked
// run needs. A sealed command does not count, because it may be lost with the process
// that can read it.
func enough(p *event.RunParked, limit string, w *journal.Waits, sent []journal.Command) bool {
	value, changed := w.Raised[limit]
	for _, c := range sent {
		if c.Kind == journal.Raise && c.Setting == limit && c.Sealed == nil {
			value, changed = c.Value, true
		}
	}
	return changed && p.Enough(value)
}

// sentAt returns when the first decision about a question was sent that is not taken.
func sentAt(sent []journal.Command, question string) (at time.Time, decided bool) {
	for _, c := range sent {
		if (c.Kind == journal.Approve || c.Kind == journal.Reject) && c.CallID == question && c.Sealed == nil {
			return c.At, true
		}
	}
	return at, false
}
