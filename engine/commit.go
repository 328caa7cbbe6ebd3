package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/follow"
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

func (d *driver) storeFailed(err error) error { return &storeError{run: d.run.id, err: err} }

// stage applies an event and queues it for the next commit. Nothing that
// follows from it may leave the process before that.
func (d *driver) stage(data event.Data) error {
	s, err := d.seal(data)
	if err != nil {
		return err
	}
	d.applied = s.event
	if err := d.machine.Apply(&d.applied); err != nil {
		return fmt.Errorf("engine: run %s: %w", d.run.id, err)
	}
	d.push(s)
	switch data.(type) {
	case event.BudgetRaised, event.ToolResult, event.CommandFinished, event.BudgetCommitted, event.ChildWaiting: // a limit that is another, what may be news, a pause
		if len(d.pending) > 0 {
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
	d.begun.note(s.event.Data)
	d.commands.note(s.event.Data)
	d.bill.note(s.event.Data)
	d.cache.Note(&s.event)
	d.env.record.Blobs.Note(s.event.Data)
	d.noteMail(s.event.Data)
}

// seal gives data its place in the run's chain.
func (d *driver) seal(data event.Data) (staged, error) {
	switch x := data.(type) {
	case event.CycleStart:
		d.cycle = x.Cycle
	case event.RunTerminatedBy, event.RunCompleted:
		d.cycle = 0
	}
	at, skipped := d.env.clock.stamp()
	s := staged{event: event.Event{
		Seq: d.seq + 1, Run: d.run.id, Parent: d.run.parent, Time: at.UTC().Truncate(time.Microsecond), SkippedMs: skipped.Milliseconds(),
		Cycle: d.cycle, Step: d.stepOf(data), Data: data, Prev: d.head,
	}}
	var err error
	if s.body, err = d.env.record.Seal(&s.event); err != nil {
		return s, fmt.Errorf("engine: run %s: %w", d.run.id, err)
	}
	return s, nil
}

// stepOf is the step that an event belongs to: that which it tells of, or whose
// child it is about, or which the run is.
func (d *driver) stepOf(data event.Data) string {
	var child string
	switch x := data.(type) {
	case event.Stepped:
		return cmp.Or(x.OfStep(), d.run.step)
	case event.ChildParked:
		child = x.Child
	case event.ChildWaiting:
		child = x.Child
	case event.ChildFinished:
		child = x.Child
	case event.BudgetReserved:
		child = x.Run
	case event.BudgetCommitted:
		child = x.Run
	}
	if child == "" {
		return d.run.step
	}
	c, _ := d.begun.of(child)
	return cmp.Or(c.step, d.run.step)
}

// commit writes what is staged, takes the commands that were answered out of the
// inbox, and then publishes. The commit after which the driver leaves gives the
// lease up as well.
func (d *driver) commit(ctx context.Context) error {
	if len(d.staged) == 0 && len(d.consumed) == 0 {
		return nil
	}
	if err := d.sayOnce(); err != nil {
		return fmt.Errorf("engine: run %s: %w", d.run.id, err)
	}
	b := d.batch(d.status())
	if !d.unborn {
		b.Release = d.finished()
	}
	pos, err := d.write(ctx, b)
	if err != nil {
		return d.storeFailed(err)
	}
	d.released = b.Release
	d.tellAbove()
	d.publish(pos)
	return nil
}

// sayOnce takes out of what is staged the texts that stand there more than once.
func (d *driver) sayOnce() error {
	if !slices.ContainsFunc(d.staged, func(s staged) bool { _, ends := s.event.Data.(event.StepFinished); return ends }) {
		return nil
	}
	events := make([]*event.Event, len(d.staged))
	for i := range d.staged {
		events[i] = &d.staged[i].event
	}
	first := event.Once(events)
	if first < 0 {
		return nil
	}
	head := d.staged[first].event.Prev
	for i := range d.staged[first:] {
		s := &d.staged[first+i]
		s.event.Prev = head
		body, err := event.Encode(&s.event)
		if err != nil {
			return err
		}
		s.body, head = body, event.Hash(body)
	}
	d.head = head
	return nil
}

// write appends a batch, or makes the run with it.
func (d *driver) write(ctx context.Context, b journal.Batch) (pos int64, err error) {
	if !d.unborn {
		return d.store.Append(ctx, b)
	}
	asked := time.Now()
	b.Lease = journal.Lease{Run: d.run.id, Owner: d.lease.Owner, Expiry: d.engine.opts.Now().Add(d.engine.opts.LeaseTTL)}
	lease, pos, err := d.store.Create(ctx, journal.Run{
		ID: d.run.id, Parent: d.run.parent, Root: d.run.root, Depth: d.run.depth, Kind: d.run.kind, Name: d.run.name, Created: d.last,
	}, b)
	if err != nil {
		return 0, fmt.Errorf("create it: %w", err)
	}
	d.lease, d.leased, d.unborn = lease, asked, false
	return pos, nil
}

// waits reports whether a run that is not made yet has nothing to do but to ask the
// run above for a part of its budget. It is made when the answer comes, or with the
// next beat of its lease.
func (d *driver) waits() bool { return d.unborn && d.reserving && len(d.queue) == 1 }

func (d *driver) batch(status journal.Progress) journal.Batch {
	b := journal.Batch{Lease: d.lease, Head: d.head, Consumed: d.consumed, Status: status, Time: d.last}
	b.Blobs = d.env.record.Blobs.Take(func(yield func(event.Data) bool) {
		for i := range d.staged {
			if !yield(d.staged[i].event.Data) {
				return
			}
		}
	})
	b.Records = make([]journal.Record, len(d.staged))
	for i := range d.staged {
		s := &d.staged[i]
		b.Records[i] = journal.Record{Run: d.run.id, Seq: s.event.Seq, Type: string(s.event.Type()), Body: s.body}
	}
	return b
}

func (d *driver) status() journal.Progress {
	s := d.machine.State()
	st := journal.Progress{State: journal.Running, Cycles: s.Cycle}
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
	var heard []follow.Event
	listened := d.engine.follower.Listened()
	for i := range d.staged {
		s := &d.staged[i]
		s.event.Pos = pos + int64(i)
		d.env.live.committed(s.event.Seq, s.event.Pos)
		d.observeEvent(&s.event)
		if listened {
			heard = append(heard, follow.Durable(s.event, len(s.body)))
		}
	}
	d.engine.follower.Publish(d.run.root, heard)
	clear(d.staged)
	d.staged, d.consumed, d.news = d.staged[:0], nil, 0
}
