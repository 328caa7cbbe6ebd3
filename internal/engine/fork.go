package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// ErrNoSuchEvent is returned for a point that a run has not reached.
var ErrNoSuchEvent = errors.New("engine: the run has no such event")

// ResultError says why a fork cannot change the result of a call.
type ResultError struct {
	CallID string
	// Why is what stands against it, Seq the event to fork at instead, 0 when
	// there is none.
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

// Branch is a point of a run behind which another can begin.
type Branch struct {
	// Run wrote the event: the run that was named, or one it is a fork of.
	Run string
	// Seq is the last event that is shared: the one asked for, or the nearest
	// before it at which no call was open and the run had not ended.
	Seq, Requested int64
	Hash           string
	// Started is the run's first event, with what forks before it changed.
	Started event.RunStarted
	// Machine is folded up to Seq.
	Machine machine.Machine
	// Keep returns what the fork takes over of the run from behind the branch: what the
	// run journalled for an action, nil for nothing. The fork does what follows from it.
	Keep func(machine.Action) []event.Data

	events []*event.Event
}

// Branch finds the point of a run to fork at. It changes nothing, and works
// on any run, whoever drives it.
func (e *Engine) Branch(ctx context.Context, run string, seq int64) (*Branch, error) {
	fail := func(err error) (*Branch, error) {
		return nil, fmt.Errorf("engine: fork run %s at %d: %w", run, seq, err)
	}
	row, err := e.store.Run(ctx, run)
	switch {
	case err != nil:
		return fail(err)
	case seq < 1 || seq > row.Seq:
		return fail(fmt.Errorf("%w: it has events 1 to %d", ErrNoSuchEvent, row.Seq))
	}
	b := &Branch{Requested: seq}
	var open openEffects
	for read, err := range drive.Events(ctx, e.store, run, seq) {
		if err != nil {
			return fail(err)
		}
		r, ev := read.Record, read.Event
		if r.Seq == 1 { // a replay begins a run with it, which has to bring its attachments
			if ev.Data, err = drive.NewBlobs(e.store).Attach(ctx, ev.Data); err != nil {
				return fail(err)
			}
		}
		if event.LeftOut(ev.Data) {
			break // what it says stands behind the point that was asked for
		}
		b.events = append(b.events, ev)
		if open.note(ev.Data); !open.any() {
			b.Run, b.Seq, b.Hash = ev.Run, r.Seq, event.Hash(r.Body)
		}
	}
	if b.Seq == 0 {
		return fail(journal.ErrNotFound)
	}
	return b, b.fold(e.machines)
}

// fold brings the machine to the branch.
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
	for _, ev := range b.events[:b.Seq] {
		if err := m.Apply(ev); err != nil {
			return fmt.Errorf("engine: fork run %s: %w", b.Run, err)
		}
		if forked, ok := ev.Data.(event.RunForked); ok {
			b.Started = b.Started.Forked(forked)
		}
	}
	return nil
}

// openEffects follows what is under way along a run's events, but for children: a
// fork begins those anew.
type openEffects struct {
	model, calls, ended bool
	commands            openCommands
}

func (o *openEffects) note(data event.Data) {
	o.commands.note(data)
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

// CheckResult says whether a fork here may change what a call gave: the result
// must be there, and no answer that went on from it.
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

// Fork makes a run that shares what is before the branch and goes on by
// itself. It is not driven: [Engine.Resume] does that. Of change, what says
// where it forks is filled in. Files are as they are, not as they were.
func (e *Engine) Fork(ctx context.Context, b *Branch, change event.RunForked) (string, error) {
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("engine: fork run %s at %d: %w", b.Run, b.Seq, err)
	}
	for _, r := range change.Results {
		if err := b.CheckResult(r.CallID); err != nil {
			return fail(err)
		}
	}
	change.From, change.Seq, change.Hash, change.Requested = b.Run, b.Seq, b.Hash, 0
	if b.Requested != b.Seq {
		change.Requested = b.Requested
	}
	d := e.newDriver(b.Machine, Env{}, e.opts.NewID(), "")
	d.run.kind, d.run.name = b.Started.Kind, b.Started.Name
	d.log.seq, d.log.head = b.Seq, b.Hash
	d.log.cycle = b.Machine.State().Cycle
	if err := d.stage(change); err != nil {
		return fail(err)
	}
	if err := errors.Join(d.takeOver(b.Keep), d.log.sayOnce()); err != nil {
		return fail(err)
	}
	status := d.status()
	status.State = journal.Queued
	batch := d.log.batch(status)
	batch.Release = true
	_, _, err := e.store.Create(ctx, journal.Run{
		ID: d.run.id, ForkOf: b.Run, ForkSeq: b.Seq, Kind: d.run.kind, Name: d.run.name, Created: d.log.last,
	}, batch)
	if err != nil {
		return fail(err)
	}
	return d.run.id, nil
}

// takeOver stages what a run keeps of the one that it is a fork of.
func (d *driver) takeOver(keep func(machine.Action) []event.Data) error {
	for progress := keep != nil; progress; {
		progress = false
		for _, a := range d.machine.Next() {
			for _, data := range keep(a) {
				if err := d.stage(data); err != nil {
					return err
				}
				progress = true
			}
		}
	}
	return nil
}
