package simulate_test

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/journal"
)

// standing checks what lists show of parked runs, read backwards from a run's newest
// events, against a whole fold: what would the machine do after a resume?
func (w *world) standing() {
	ctx := context.Background()
	open := journal.Filter{States: []journal.State{journal.Running, journal.Waiting, journal.Parked}}
	before, err := w.store.Runs(ctx, open)
	if err != nil {
		w.violate("the runs cannot be listed: %v", err)
		return
	}
	if !slices.ContainsFunc(before, func(r journal.Run) bool { return r.State == journal.Parked }) {
		return
	}
	listed, err := control.New(w.store, nil).RunStatuses(ctx, before)
	if err != nil {
		w.violate("the runs' statuses cannot be told: %v", err)
		return
	}
	whole := wholeLook{now: time.Now(), runs: map[string]*folded{}}
	waiting := map[string][]control.Pending{}
	for _, row := range before {
		if whole.runs[row.ID], err = w.fold(ctx, row); err != nil {
			w.violate("%v", err)
			return
		}
		if waiting[row.ID], err = control.New(w.store, nil).PendingIn(ctx, row.ID); err != nil {
			w.violate("the calls of run %s cannot be listed: %v", row.ID, err)
			return
		}
	}
	after, err := w.store.Runs(ctx, open)
	if err != nil || !slices.EqualFunc(before, after, func(a, b journal.Run) bool { return a.Seq == b.Seq && a.State == b.State }) {
		return // another process drives them meanwhile
	}
	for _, s := range listed {
		if got, want := callsOf(waiting[s.ID]), whole.runs[s.ID].asked; !slices.Equal(got, want) {
			w.violate("of run %s these calls are listed at event %d: %v, and these wait: %v", s.ID, s.Seq, got, want)
		}
		if s.State != journal.Parked {
			continue
		}
		free := false
		if r := event.ParkReason(s.Detail); r == event.ParkApproval || r == event.ParkInput {
			free = !whole.waits(s.ID)
		}
		late := whole.runs[s.ID].late
		if s.Answered != (free && !late) || s.Expired != (free && late) {
			w.violate("run %s is listed at event %d as answered: %t, expired: %t", s.ID, s.Seq, s.Answered, s.Expired)
		}
		w.seen("listed as " + called(s))
	}
}

func callsOf(pending []control.Pending) (calls []string) {
	for _, p := range pending {
		calls = append(calls, p.ID+" "+p.Digest)
	}
	return calls
}

// called is how a list calls a parked run.
func called(s control.RunStatus) string {
	switch {
	case s.Answered:
		return s.Detail + ", answered"
	case s.Expired:
		return s.Detail + ", expired"
	}
	return s.Detail
}

// folded is a run's machine, with the commands to the run that no driver has read.
type folded struct {
	machine.Funder
	row      journal.Run
	finished map[string]bool
	// raised are the limits that were changed since the run parked, with their
	// newest values.
	raised map[string]float64
	// asked are the calls that wait by the journal alone.
	asked []string
	// waits is computed at the first call: that resumes the machine.
	waits *bool
	// late says that a decision about one of its calls, or of those of the runs
	// that it started, comes too late.
	late bool
}

// machineOf is the machine of a run that begins so.
func machineOf(d event.RunStarted) machine.Funder {
	m, err := versions.Make(d.Machine)
	if err != nil {
		panic(err)
	}
	return m.(machine.Funder)
}

func (w *world) fold(ctx context.Context, row journal.Run) (*folded, error) {
	f := &folded{row: row, finished: map[string]bool{}, raised: map[string]float64{}}
	records, err := w.store.Records(ctx, row.ID, 0, int(row.Seq))
	if err != nil {
		return nil, err
	}
	var texts event.Texts
	all := make([]event.Event, len(records))
	for i, r := range records {
		e, err := w.decoded(row.ID, r)
		if err != nil {
			return nil, err
		}
		all[i] = *e
		texts.Note(&all[i])
	}
	for i := range all {
		e := &all[i]
		if d, first := e.Data.(event.RunStarted); first {
			f.Funder = machineOf(d)
		}
		if err := f.apply(e); err != nil {
			return nil, err
		}
	}
	for _, p := range f.State().Pending {
		f.asked = append(f.asked, p.ID+" "+p.Digest)
	}
	sent, err := w.store.Inbox(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	for _, c := range sent {
		// A raise is also for the children of a run that goes on.
		if data := f.hears(c); data != nil && (row.State == journal.Parked || c.Kind == journal.Raise) {
			if err := f.happens(c.At, data); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

// decoded is an event as it is stored, which is decoded once: a run is folded
// again and again.
func (w *world) decoded(run string, r journal.Record) (*event.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := stored{run, r.Seq}
	if e := w.events[key]; e != nil {
		return e, nil
	}
	e, err := event.Decode(r.Body)
	if err == nil {
		w.events[key] = e
	}
	return e, err
}

// stored is the place of an event.
type stored struct {
	run string
	seq int64
}

// hears is what a command comes to in a parked run.
func (f *folded) hears(c journal.Command) event.Data {
	switch c.Kind {
	case journal.Input:
		return event.InputReceived{Text: c.Text}
	case journal.Raise:
		return event.BudgetRaised{Setting: c.Setting, Value: c.Value}
	case journal.Approve, journal.Reject:
		for _, p := range f.State().Pending {
			if p.ID == c.CallID {
				return p.Resolve(event.Resolution{Kind: event.ApprovalRejected, At: c.At})
			}
		}
	}
	return nil
}

func (f *folded) apply(e *event.Event) error {
	switch d := e.Data.(type) {
	case event.ChildFinished:
		f.finished[d.Child] = true
	case event.RunParked:
		clear(f.raised)
		f.late = false
	case event.ToolApprovalResolved:
		f.late = f.late || d.Kind == event.ApprovalExpired
	case event.ReviewResolved:
		f.late = f.late || d.Kind == event.ApprovalExpired
	case event.BudgetRaised:
		f.raised[d.Setting] = d.Value
	}
	return f.Apply(e)
}

func (f *folded) happens(at time.Time, data event.Data) error {
	return f.apply(&event.Event{Run: f.row.ID, Parent: f.row.Parent, Time: at, Data: data})
}

// wholeLook is how runs stand by their machines.
type wholeLook struct {
	now  time.Time
	runs map[string]*folded
}

// waits reports whether a run, or one that it started and still follows, waits for a
// decision, or would park in the same way after a resume.
func (l wholeLook) waits(run string) bool {
	f := l.runs[run]
	if f.waits == nil {
		waits := l.halts(run, f)
		f.waits = &waits
	}
	return *f.waits
}

func (l wholeLook) halts(run string, f *folded) bool {
	state := f.State()
	if state.Phase == machine.Ended {
		return false
	}
	for _, p := range state.Pending {
		if p.ExpiresAt == nil || l.now.Before(*p.ExpiresAt) {
			return true
		}
		f.late = true
	}
	for id, child := range l.runs {
		if child.row.Parent != run || f.finished[id] {
			continue
		}
		if l.waits(id) {
			return true
		}
		f.late = f.late || child.late
	}
	switch p := state.Parked; {
	case p == nil:
		return false
	case f.raisedFor(p, p.Limit), p.ParentLimit != "" && l.runs[cmp.Or(p.LimitRun, f.row.Parent)].raisedFor(p, p.ParentLimit):
		return false // whether it continues with what may be enough is not promised
	case p.Limit != "", p.ParentLimit != "" && len(f.raised) > 0:
		// Anything else that may happen after a resume, such as an end at another limit
		// that was lowered, or a child's call that was decided.
		return true
	}
	return f.happens(l.now, event.RunResumed{}) == nil && l.parksAgain(f, *state.Parked)
}

// raisedFor reports whether a limit of this run was raised to what may be
// enough for a run that parked at it.
func (f *folded) raisedFor(p *event.RunParked, limit string) bool {
	value, changed := f.raised[limit]
	return changed && p.Enough(value)
}

// parksAgain reports whether a run which was gone on with comes to the same halt,
// before it does anything.
func (l wholeLook) parksAgain(f *folded, before event.RunParked) bool {
	for range 100 {
		var due event.Data
		for _, a := range f.Next() {
			switch a := a.(type) {
			case machine.Record:
				if due == nil {
					due = a.Data
				}
			case machine.Reserve:
				return l.asksAgain(f, a.Call, before)
			}
		}
		if parked, ok := due.(event.RunParked); ok {
			return parked.Reason == before.Reason && parked.Limit == before.Limit
		}
		if due == nil || f.happens(l.now, due) != nil {
			return false
		}
	}
	return true
}

// asksAgain reports whether one of the runs above has no room for a call, and
// asks for the limit at which the run parked. What another run of the tree
// holds at the moment is no answer either, nor what others used of a share
// nearer than that.
func (l wholeLook) asksAgain(f *folded, c budget.Call, before event.RunParked) bool {
	for at := f.row.Parent; at != ""; at = l.runs[at].row.Parent {
		grant := l.runs[at].Admit(c, budget.Amount{})
		switch nearer := before.LimitRun != "" && at != before.LimitRun; {
		case grant.Refusal.Setting == "":
		case nearer:
			return true
		default:
			return (grant.Ask || grant.Refusal.Wait) && grant.Refusal.Setting == before.ParentLimit
		}
		c.Output = grant.Amount.Output
	}
	return false
}
