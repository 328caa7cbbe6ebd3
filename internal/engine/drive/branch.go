package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// ErrNoSuchEvent is returned for a point that a run has not reached.
var ErrNoSuchEvent = errors.New("engine: the run has no such event")

// ResultError is the reason why a fork cannot change the result of a call.
type ResultError struct {
	CallID string
	// Why is the reason, and Seq the event to fork at instead, 0 for none.
	Why string
	Seq int64
}

// Error names the call and the event to fork at instead.
func (e *ResultError) Error() string {
	text := fmt.Sprintf("the result of %s cannot be changed: %s", e.CallID, e.Why)
	if e.Seq > 0 {
		text += fmt.Sprintf("; fork at %d", e.Seq)
	}
	return text
}

// Branch is a point of a run at which a fork can begin.
type Branch struct {
	// Run wrote the event: the named run, or one that it was forked from.
	Run string
	// Seq is the last shared event: the requested one, or the nearest one before it
	// at which no call was open and the run had not ended.
	Seq, Requested int64
	Hash           string
	// Started is the run's first event with the changes of earlier forks.
	Started event.RunStarted
	// Machine is folded up to Seq.
	Machine machine.Machine
	// Keep returns what the fork takes from the events after the branch: the events
	// that the run journalled for an action, nil for none. The fork performs what
	// follows from them.
	Keep func(machine.Action) []event.Data

	// events are the events up to the requested point.
	events []*event.Event
}

// Branch finds the point of a run to fork at. It changes nothing, and works on
// any run, even while another process drives it.
func (p Past) Branch(ctx context.Context, run string, seq int64) (*Branch, error) {
	fail := func(err error) (*Branch, error) {
		return nil, fmt.Errorf("engine: fork run %s at %d: %w", run, seq, err)
	}
	row, err := p.Store.Run(ctx, run)
	switch {
	case err != nil:
		return fail(err)
	case seq < 1 || seq > row.Seq:
		return fail(fmt.Errorf("%w: it has events 1 to %d", ErrNoSuchEvent, row.Seq))
	}
	b := &Branch{Requested: seq}
	var open openEffects
	for read, err := range Events(ctx, p.Store, run, seq) {
		if err != nil {
			return fail(err)
		}
		r, ev := read.Record, read.Event
		if r.Seq == 1 { // a replay starts a run with this event, so it needs the attachments
			if ev.Data, err = NewBlobs(p.Store).Attach(ctx, ev.Data); err != nil {
				return fail(err)
			}
		}
		if event.LeftOut(ev.Data) {
			break // its text is after the requested point
		}
		b.events = append(b.events, ev)
		if open.note(ev.Data); !open.any() {
			b.Run, b.Seq, b.Hash = ev.Run, r.Seq, event.Hash(r.Body)
		}
	}
	if b.Seq == 0 {
		return fail(journal.ErrNotFound)
	}
	return b, b.fold(p.Machines)
}

// fold applies the events up to the branch to the machine.
func (b *Branch) fold(machines func(string) (machine.Machine, error)) error {
	started, ok := b.events[0].Data.(event.RunStarted)
	if !ok {
		return fmt.Errorf("engine: the journal of run %s begins with %s", b.Run, b.events[0].Type())
	}
	m, err := machines(started.Machine)
	if err != nil {
		return fmt.Errorf("engine: fork run %s: %w", b.Run, err)
	}
	b.Started, b.Machine = started, m
	for _, ev := range b.Shared() {
		if err := m.Apply(ev); err != nil {
			return fmt.Errorf("engine: fork run %s: %w", b.Run, err)
		}
		switch x := ev.Data.(type) {
		case event.RunPlaced:
			b.Started = b.Started.Placed(x)
		case event.RunForked:
			b.Started = b.Started.Forked(x)
		}
	}
	return nil
}

// Shared returns the events that a fork shares with the run.
func (b *Branch) Shared() []*event.Event { return b.events[:b.Seq] }

// openEffects tracks the effects in progress along a run's events, without children,
// which a fork starts again.
type openEffects struct {
	model, calls, ended bool
	commands            OpenCommands
}

func (o *openEffects) note(data event.Data) {
	o.commands.Note(data)
	switch d := data.(type) {
	case event.ModelRequested:
		o.model = true
	case event.ModelAttemptFailed:
		o.model = false
	case event.ModelResponse:
		o.model, o.calls = false, len(d.ToolCalls) > 0
	case event.ToolResults:
		o.calls = false
	case event.RunTerminatedBy:
		o.ended = true
	}
}

func (o *openEffects) any() bool {
	return o.model || o.calls || o.ended || len(o.commands) > 0
}

// CheckResult returns an error if a fork here cannot change a call's result: the
// result must exist, and no later answer may depend on it.
func (b *Branch) CheckResult(callID string) error {
	settled, closed, answered := int64(0), int64(0), int64(0)
	for _, ev := range b.events {
		switch d := ev.Data.(type) {
		case event.ToolResult:
			if d.CallID == callID {
				settled = ev.Seq
			}
		case event.ToolResults:
			if settled > 0 && closed == 0 {
				closed = ev.Seq
			}
		case event.ModelResponse:
			if closed > 0 && answered == 0 && ev.Seq <= b.Seq {
				answered = ev.Seq
			}
		}
	}
	switch {
	case settled == 0:
		return &ResultError{CallID: callID, Why: fmt.Sprintf("it has none up to event %d", b.Requested)}
	case closed == 0 || closed > b.Seq:
		return &ResultError{CallID: callID, Why: "other calls beside it are still open there, so the fork begins before it; choose a later event"}
	case answered > 0:
		return &ResultError{CallID: callID, Why: fmt.Sprintf("the model has gone on from it in event %d", answered), Seq: closed}
	}
	return nil
}

// OpenCommands are the commands in progress.
type OpenCommands []event.CommandStarted

// Note applies an event about the commands.
func (o *OpenCommands) Note(data event.Data) {
	switch x := data.(type) {
	case event.CommandStarted:
		o.drop(x.ID)
		*o = append(*o, x)
	case event.CommandFinished:
		o.drop(x.ID)
	}
}

func (o *OpenCommands) drop(id string) {
	*o = slices.DeleteFunc(*o, func(c event.CommandStarted) bool { return c.ID == id })
}

// EffectsAfter returns what a run and its descendants did outside of the journal after
// one of the run's events, in order. A fork at that event undoes none of it.
func (p Past) EffectsAfter(ctx context.Context, run string, seq int64) ([]view.Effect, error) {
	fail := func(err error) ([]view.Effect, error) {
		return nil, fmt.Errorf("effects of run %s after event %d: %w", run, seq, err)
	}
	at, err := p.Store.Records(ctx, run, seq-1, 1)
	if err != nil {
		return fail(err)
	}
	if len(at) == 0 {
		return fail(ErrNoSuchEvent)
	}
	var found view.Effects
	for e, err := range WithDescendants(ctx, p.Store, run, event.TypeToolCall, event.TypeToolStarted, event.TypeToolResult,
		event.CommandStarted{}.EventType(), event.CommandFinished{}.EventType()) {
		if err != nil {
			return fail(err)
		}
		found.Add(e, e.Pos > at[0].Pos)
	}
	slices.SortFunc(found.Items, func(a, b view.Effect) int { return cmp.Compare(a.Pos, b.Pos) })
	return found.Items, nil
}

// WithDescendants yields a run's events of some types and of child.started, and then
// those of each run that it started, in the same way.
func WithDescendants(ctx context.Context, store journal.Store, run string, types ...event.Type) iter.Seq2[*event.Event, error] {
	types = append(types, event.TypeChildStarted)
	seen := map[string]bool{}
	var walk func(run string, yield func(*event.Event, error) bool) bool
	walk = func(run string, yield func(*event.Event, error) bool) bool {
		seen[run] = true
		var children []string
		for e, err := range AsStored(ctx, store, run, types...) {
			if !yield(e, err) || err != nil {
				return false
			}
			if d, is := e.Data.(event.ChildStarted); is && !seen[d.Child] {
				children = append(children, d.Child)
			}
		}
		for _, child := range children {
			if !seen[child] && !walk(child, yield) {
				return false
			}
		}
		return true
	}
	return func(yield func(*event.Event, error) bool) { walk(run, yield) }
}

// Step is a run on the path from a run down to one below it.
type Step struct {
	Run  string `json:"run"`
	Name string `json:"name,omitempty"`
}

// Below is a descendant of a run, with the path to it: the last step is the descendant
// itself.
type Below struct {
	journal.Run
	Path []Step
}

// Below returns the descendants of a run in the order of their start; a parent comes
// before its children.
func (p Past) Below(ctx context.Context, run string) ([]Below, error) {
	top, err := p.Store.Run(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	rows, err := p.Store.Runs(ctx, journal.Filter{Root: top.Root})
	if err != nil {
		return nil, fmt.Errorf("runs below run %s: %w", run, err)
	}
	started := map[string][]journal.Run{}
	for _, r := range slices.Backward(rows) { // they come newest first
		started[r.Parent] = append(started[r.Parent], r)
	}
	var all []Below
	var walk func(above string, path []Step)
	walk = func(above string, path []Step) {
		for _, r := range started[above] {
			to := append(slices.Clone(path), Step{Run: r.ID, Name: r.Name})
			all = append(all, Below{Run: r, Path: to})
			walk(r.ID, to)
		}
	}
	walk(top.ID, nil)
	return all, nil
}
