package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// take claims a run, acquires its lease and folds its journal; whole brings the
// contents back that lie beside the events, which only requests need.
func (e *Engine) take(ctx context.Context, run string, whole bool) (*driver, event.RunStarted, error) {
	if err := ctx.Err(); err != nil {
		return nil, event.RunStarted{}, fmt.Errorf("engine: take run %s: %w", run, context.Cause(ctx))
	}
	if err := e.claim(run); err != nil {
		return nil, event.RunStarted{}, err
	}
	asked := time.Now()
	lease, err := e.acquire(ctx, run)
	if err != nil {
		e.unclaim(run)
		return nil, event.RunStarted{}, err
	}
	d, started, err := e.load(ctx, run, whole)
	if err == nil && d.machine.State().Phase == machine.Ended {
		err = fmt.Errorf("engine: run %s: %w", run, journal.ErrEnded)
	}
	if err == nil {
		err = e.whole(ctx, d)
	}
	if err != nil {
		err = errors.Join(err, e.store.Release(context.WithoutCancel(ctx), lease))
		e.unclaim(run)
		return nil, event.RunStarted{}, err
	}
	d.log.lease.take(lease, asked)
	return d, started, nil
}

// whole returns an error unless the last event that was read is the one that the run's
// row knows. Those before it carry each other's hashes.
func (e *Engine) whole(ctx context.Context, d *driver) error {
	row, err := e.store.Run(ctx, d.run.id)
	if err == nil && (row.Seq != d.log.seq || row.Head != d.log.head) {
		err = &unreadableError{&journal.CorruptError{
			Run: d.run.id, Seq: d.log.seq, What: "its hash is not the one in the run's row", Want: row.Head, Got: d.log.head,
		}}
	}
	if err != nil {
		return fmt.Errorf("engine: load run %s: %w", d.run.id, err)
	}
	return nil
}

// load folds a run's journal into a machine.
func (e *Engine) load(ctx context.Context, run string, whole bool) (*driver, event.RunStarted, error) {
	var d *driver
	var started event.RunStarted
	fail := func(err error) (*driver, event.RunStarted, error) {
		return nil, event.RunStarted{}, fmt.Errorf("engine: load run %s: %w", run, err)
	}
	unreadable := func(err error) (*driver, event.RunStarted, error) { return fail(&unreadableError{err}) }
	for read, err := range drive.Events(ctx, e.store, run, 0) {
		if _, broken := errors.AsType[*drive.DecodeError](err); broken {
			return unreadable(err)
		}
		if err != nil {
			return fail(err)
		}
		r, ev := read.Record, read.Event
		if d == nil {
			if d, started, err = e.begin(run, ev); err != nil {
				return unreadable(err)
			}
		}
		if d.log.seq > 0 && (r.Seq != d.log.seq+1 || ev.Prev != d.log.head) {
			// To go on from here would be to act on what nobody said.
			return unreadable(&journal.CorruptError{
				Run: run, Seq: d.log.seq, What: fmt.Sprintf("its hash is not the one that event %d carries", r.Seq),
				Want: ev.Prev, Got: d.log.head,
			})
		}
		if whole {
			if ev.Data, err = d.env.record.Blobs.Attach(ctx, ev.Data); err != nil {
				return fail(fmt.Errorf("event %d: %w", r.Seq, err))
			}
		}
		if err := d.machine.Apply(ev); err != nil {
			return unreadable(err)
		}
		d.log.note(ev, event.Hash(r.Body))
		d.env.record.Blobs.Note(ev.Data)
		if forked, ok := ev.Data.(event.RunForked); ok {
			started = started.Forked(forked)
			d.run.traced, d.run.birth = started.Trace, ev.Time
		}
	}
	if d == nil {
		return fail(journal.ErrNotFound)
	}
	d.log.cycle = d.machine.State().Cycle
	d.env.clock.goOnFrom(d.log.last)
	return d, started, nil
}

// unreadableError is about a journal that was read and makes no run: it is
// damaged, or a newer version wrote it. To read it again would find the same.
type unreadableError struct{ err error }

func (e *unreadableError) Error() string { return e.err.Error() }
func (e *unreadableError) Unwrap() error { return e.err }

func isUnreadable(err error) bool { return errors.As(err, new(*unreadableError)) }

// begin makes the driver of a run from its first event, which is another run's
// where it is a fork.
func (e *Engine) begin(run string, first *event.Event) (*driver, event.RunStarted, error) {
	started, ok := first.Data.(event.RunStarted)
	if !ok {
		return nil, started, fmt.Errorf("its journal begins with %s", first.Type())
	}
	m, err := e.machines(started.Machine)
	if err != nil {
		return nil, started, err
	}
	parent := first.Parent
	if first.Run != run {
		parent = ""
	}
	d := e.newDriver(m, Env{}, run, parent)
	d.run.begin(started)
	d.run.birth = first.Time
	return d, started, nil
}
