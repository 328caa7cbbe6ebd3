package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// Branch finds the point of a run to fork at; see [drive.Past.Branch].
func (e *Engine) Branch(ctx context.Context, run string, seq int64) (*drive.Branch, error) {
	return e.Past().Branch(ctx, run, seq)
}

// Fork makes a run that shares the events before the branch and then continues
// by itself. It is not driven: [Engine.Resume] does that. Fork fills in the
// fields of change that say where it forks. Files stay as they are now.
func (e *Engine) Fork(ctx context.Context, b *drive.Branch, change event.RunForked) (string, error) {
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
	d := e.newDriver(b.Machine, perform.Env{}, e.opts.NewID(), "")
	d.run.kind, d.run.name = b.Started.Kind, b.Started.Name
	d.log.seq, d.log.head = b.Seq, b.Hash
	d.log.cycle = b.Machine.State().Cycle
	for _, ev := range b.Shared() {
		d.log.waiting.Note(ev)
	}
	if err := d.stage(change); err != nil {
		return fail(err)
	}
	if err := errors.Join(d.takeOver(b.Keep), d.log.shareTexts()); err != nil {
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

// takeOver stages what a fork takes from the other run.
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
