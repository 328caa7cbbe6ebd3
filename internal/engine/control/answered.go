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
}

// RunStatuses adds to rows what they do not contain. It reads only the last cycle
// of each run. A run that cannot be read is listed as its row has it.
func (d *Controller) RunStatuses(ctx context.Context, rows []journal.Run) ([]RunStatus, error) {
	all := make([]RunStatus, len(rows))
	l := look{Controller: d, now: time.Now()}
	var parked, driven []*RunStatus
	for i, r := range rows {
		all[i].Run = r
		going := r.State == journal.Running || r.State == journal.Waiting
		all[i].Undriven = going && !Alive(r, l.now)
		switch {
		case parkedFor(r, event.ParkApproval) || parkedFor(r, event.ParkInput):
			parked = append(parked, &all[i])
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
		h, err := l.hold(ctx, s.Run)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		s.Answered, s.Expired = err == nil && h == free, err == nil && h == expired
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
func (l look) pausing(ctx context.Context, r journal.Run) (bool, error) {
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

// look is one reading of the state of runs.
type look struct {
	*Controller
	now time.Time
	// inboxes holds the commands to each run that are not taken, nil if each run's
	// inbox is read by itself.
	inboxes map[string][]journal.Command
}

// readInboxes reads the inboxes of all runs at once, unless one of them is
// damaged.
func (l *look) readInboxes(ctx context.Context) {
	sent, err := l.store.Inbox(ctx, "")
	if err != nil {
		return
	}
	l.inboxes = map[string][]journal.Command{}
	for _, c := range sent {
		l.inboxes[c.Run] = append(l.inboxes[c.Run], c)
	}
}

func (l look) inbox(ctx context.Context, run string) ([]journal.Command, error) {
	if l.inboxes != nil {
		return l.inboxes[run], nil
	}
	sent, err := l.store.Inbox(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("control: inbox of run %s: %w", run, err)
	}
	return sent, nil
}

// hold is what a run waits for.
type hold uint8

const (
	// free: nothing.
	free hold = iota
	// expired: nothing any more, because the time for a decision is over.
	expired
	waits
)

// hold returns what a run that has not ended waits for, in itself or in a run
// below it. A run below that cannot be read is left out, as in
// [Controller.Pending].
func (l look) hold(ctx context.Context, r journal.Run) (hold, error) {
	s, err := l.standstill(ctx, r)
	if err != nil || s.undecided {
		return waits, err
	}
	if parkedFor(r, event.ParkInput) {
		told, err := l.told(ctx, r, s)
		if err != nil || !told && (s.refused || len(s.children) == 0) {
			return waits, err
		}
	}
	most := free
	if s.expired {
		most = expired
	}
	for _, id := range s.children {
		h, err := l.childsHold(ctx, id)
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

func (l look) childsHold(ctx context.Context, id string) (hold, error) {
	child, err := l.store.Run(ctx, id)
	if err != nil || child.State == journal.Ended {
		return free, err
	}
	return l.hold(ctx, child)
}

// told reports whether a run that parked for a message or a limit has received
// it.
func (l look) told(ctx context.Context, r journal.Run, s standstill) (bool, error) {
	switch {
	case s.parked.ParentLimit != "":
		above, err := l.store.Run(ctx, cmp.Or(s.parked.LimitRun, r.Parent))
		if err != nil {
			return false, fmt.Errorf("control: a run above run %s: %w", r.ID, err)
		}
		parent, err := l.standstill(ctx, above)
		return parent.raisedFor(s.parked, s.parked.ParentLimit), err
	case s.parked.Limit != "":
		return s.raisedFor(s.parked, s.parked.Limit), nil
	}
	return s.message, nil
}

// standstill is what a run waits for, and what it has received since it parked.
type standstill struct {
	questions
	parked event.RunParked
	now    time.Time
	// undecided reports whether a question waits for a decision, and expired whether
	// the time for one is over.
	undecided, expired bool
	message            bool
	// refused reports whether a call of the run itself has no room in the limit above
	// it. A run also parks at such a limit for a run below it, which may have ended
	// since. resumed reports that what follows was before the run was last resumed.
	refused, resumed bool
	// raised holds the limits that were changed, with their newest values.
	raised map[string]float64
	// sentAt holds, by call, when a decision was sent that is not taken.
	sentAt map[string]time.Time
	// children are those that have not ended, unless the run parked at a limit that
	// is still to be raised.
	children []string
}

// heldBy are the types of the events, beside the questions, that a run's standstill
// is read from.
var heldBy = [...]event.Type{
	event.TypeRunParked, event.TypeRunResumed, event.TypeBudgetRaised, event.TypeBudgetRefused, event.TypeChildStarted, event.TypeChildFinished,
}

// standstill reads a run backwards, as far as necessary.
func (l look) standstill(ctx context.Context, r journal.Run) (standstill, error) {
	s := standstill{questions: newQuestions(), now: l.now, raised: map[string]float64{}, sentAt: map[string]time.Time{}}
	sent, err := l.inbox(ctx, r.ID)
	if err != nil {
		return s, err
	}
	for _, c := range sent {
		s.sent(c)
	}
	for rec, err := range l.backwards(ctx, r, 1) {
		t := event.Type(rec.Type)
		switch {
		case err != nil:
			return s, err
		case s.first(t):
			return s, nil
		case !s.reads(t) && !slices.Contains(heldBy[:], t):
			continue
		}
		e, err := event.Decode(rec.Body)
		if err != nil {
			return s, fmt.Errorf("control: run %s, event %d: %w", r.ID, rec.Seq, err)
		}
		s.before(e)
		atLimit := s.parked.Limit != "" || s.refused
		if s.undecided || atLimit && !s.raisedFor(s.parked, s.parked.Limit) {
			break
		}
	}
	return s, nil
}

// sent adds a command that is not taken. A sealed command does not count,
// because it may be lost with the process that can read it.
func (s *standstill) sent(c journal.Command) {
	switch {
	case c.Sealed != nil:
	case c.Kind == journal.Input:
		s.message = true
	case c.Kind == journal.Raise:
		s.raised[c.Setting] = c.Value
	case c.Kind == journal.Approve, c.Kind == journal.Reject:
		if _, known := s.sentAt[c.CallID]; !known {
			s.sentAt[c.CallID] = c.At
		}
	}
}

// before adds the event before those that were added.
func (s *standstill) before(e *event.Event) {
	waited, sinceParked := len(s.open), s.parked.Reason == ""
	s.questions.before(e)
	if len(s.open) > waited {
		s.asked(s.open[0])
	}
	switch d := e.Data.(type) {
	case event.RunParked:
		if sinceParked {
			s.parked = d
		}
	case event.RunResumed:
		s.resumed = s.resumed || !sinceParked
	case event.BudgetRefused:
		s.refused = s.refused || !s.resumed && d.Ask && d.Setting == s.parked.ParentLimit
	case event.InputReceived:
		s.message = s.message || sinceParked
	case event.BudgetRaised:
		if _, newer := s.raised[d.Setting]; sinceParked && !newer {
			s.raised[d.Setting] = d.Value
		}
	case event.Resolving:
		s.expired = s.expired || sinceParked && d.Resolution().Kind == event.ApprovalExpired
	case event.ChildFinished:
		s.closed[d.Child] = true
	case event.ChildStarted:
		if !s.closed[d.Child] {
			s.children = append(s.children, d.Child)
		}
	}
}

// raisedFor reports whether a limit of this run was raised to the value that a
// parked run needs.
func (s *standstill) raisedFor(parked event.RunParked, limit string) bool {
	value, changed := s.raised[limit]
	return changed && parked.Enough(value)
}

// asked adds an open question. Questions for a message are handled separately.
func (s *standstill) asked(q event.Question) {
	at, sent := s.sentAt[q.ID]
	if !sent {
		at = s.now
	}
	s.expired = s.expired || q.Late(at)
	s.undecided = s.undecided || !q.Late(at) && !q.Message && !sent
}
