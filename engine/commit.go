package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/machine"
)

// staged is an event that is applied and not yet on disk.
type staged struct {
	event event.Event
	body  []byte
}

// storeError is a failure of the journal. It leaves the run as the journal has
// it, to be resumed; any other error is a defect that ends the run.
type storeError struct {
	run string
	err error
}

func (e *storeError) Error() string { return fmt.Sprintf("engine: run %s: %v", e.run, e.err) }
func (e *storeError) Unwrap() error { return e.err }

func (d *driver) storeFailed(err error) error { return &storeError{run: d.run, err: err} }

// stage applies an event and queues it for the next commit. Nothing that
// follows from it may leave the process before that.
func (d *driver) stage(data event.Data) error {
	s, err := d.seal(data)
	if err != nil {
		return err
	}
	d.applied = s.event
	if err := d.machine.Apply(&d.applied); err != nil {
		return fmt.Errorf("engine: run %s: %w", d.run, err)
	}
	d.push(s)
	switch data.(type) {
	case event.BudgetRaised, event.ToolResult, event.BudgetCommitted, event.ChildWaiting: // a limit that is another, what may be news, a pause
		if len(d.flights) > 0 {
			d.moveDeadlines()
		}
	}
	return nil
}

// push queues an event that has been applied.
func (d *driver) push(s staged) {
	d.staged = append(d.staged, s)
	d.seq, d.head, d.last = s.event.Seq, event.Hash(s.body), s.event.Time
	d.open.note(s.event.Data)
	d.bill.note(s.event.Data)
	d.cache.note(&s.event)
	d.blobs.note(s.event.Data)
}

// seal gives data its place in the run's chain.
func (d *driver) seal(data event.Data) (staged, error) {
	switch x := data.(type) {
	case event.CycleStart:
		d.cycle = x.Cycle
	case event.RunTerminatedBy, event.RunCompleted:
		d.cycle = 0
	}
	at, skipped := d.clock.stamp()
	s := staged{event: event.Event{
		Seq: d.seq + 1, Run: d.run, Parent: d.parent, Time: at.UTC().Truncate(time.Microsecond), SkippedMs: skipped.Milliseconds(),
		Cycle: d.cycle, Data: data, Prev: d.head,
	}}
	var err error
	if s.body, err = event.Encode(&s.event); err != nil {
		return s, fmt.Errorf("engine: run %s: %w", d.run, err)
	}
	if nestedDeeper(s.body, maxEventNesting) {
		return s, fmt.Errorf("engine: run %s: %s is nested deeper than %d levels, so nobody could read the journal that holds it", d.run, data.EventType(), maxEventNesting)
	}
	if err := asStored(&s); err != nil {
		return s, fmt.Errorf("engine: run %s: %w", d.run, err)
	}
	if err := d.redact(&s); err != nil {
		return s, fmt.Errorf("engine: run %s: %w", d.run, err)
	}
	return s, nil
}

// commit writes what is staged, takes the commands that were answered out of the
// inbox, and then publishes. The commit after which the driver leaves gives the
// lease up as well.
func (d *driver) commit(ctx context.Context) error {
	if len(d.staged) == 0 && len(d.consumed) == 0 {
		return nil
	}
	b := d.batch(d.status())
	b.Release = d.finished()
	pos, err := d.store.Append(ctx, b)
	if err != nil {
		return d.storeFailed(err)
	}
	d.released = b.Release
	d.tellAbove()
	d.publish(pos)
	return nil
}

func (d *driver) batch(status journal.Status) journal.Batch {
	b := journal.Batch{Lease: d.lease, Head: d.head, Consumed: d.consumed, Status: status, Time: d.last}
	b.Blobs = d.blobs.take(d.staged)
	b.Records = make([]journal.Record, len(d.staged))
	for i := range d.staged {
		s := &d.staged[i]
		b.Records[i] = journal.Record{Run: d.run, Seq: s.event.Seq, Type: string(s.event.Type()), Body: s.body}
	}
	return b
}

func (d *driver) status() journal.Status {
	s := d.machine.State()
	st := journal.Status{State: journal.Running, Cycles: s.Cycle}
	switch {
	case s.Phase == machine.Ended:
		st.State, st.Detail = journal.Ended, string(s.Outcome.Reason)
		st.Outcome, _ = json.Marshal(s.Outcome)
	case s.Parked != nil && s.Parked.Reason == event.ParkPaused:
		st.State, st.Detail = journal.Paused, string(s.Parked.Reason)
	case s.Parked != nil:
		st.State, st.Detail = journal.Parked, string(s.Parked.Reason)
	case d.waiting != "":
		st.State, st.Detail = journal.Waiting, d.waiting
	case s.Asking:
		st.State, st.Detail = journal.Waiting, string(event.ParkApproval)
	}
	return st
}

// publish hands out what is on disk now.
func (d *driver) publish(pos int64) {
	for i := range d.staged {
		d.staged[i].event.Pos = pos + int64(i)
	}
	d.hub.publish(d.staged)
	clear(d.staged)
	d.staged, d.consumed = d.staged[:0], nil
}
