package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// eventLog is the journal of a run as its driver writes it: each event gets its
// place in the chain, waits for the next commit, and is then published.
type eventLog struct {
	store journal.Store
	// values reports whether the store keeps events as values and makes their bytes
	// and hashes itself.
	values   bool
	run      *identity
	env      *perform.Performer
	follower *follow.Follower
	lease    lease
	fold
	// applied is the last event that the machine applied. staged holds the events of
	// the next commit, and consumed the commands that this commit removes from the
	// inbox.
	applied  event.Event
	staged   []staged
	consumed []int64
	// taking is the settled effect's payload until it is staged.
	taking event.Data
	// observers are those that may want the run's events. watching holds their functions,
	// once they are known.
	observers []perform.Observer
	watching  []func(*event.Event)
	growth    drive.Growth
}

// staged is an event that is applied and not yet on disk. It has no body if the
// store keeps values; size is that of its stored form.
type staged struct {
	event event.Event
	body  []byte
	size  int
}

// storeError is a failure of the journal. The run stays as the journal has it
// and can be resumed. Any other error is a defect that ends the run.
type storeError struct {
	run string
	err error
}

func (e *storeError) Error() string { return fmt.Sprintf("engine: run %s: %v", e.run, e.err) }
func (e *storeError) Unwrap() error { return e.err }

// failed wraps the error of the store.
func (l *eventLog) failed(err error) error { return &storeError{run: l.run.id, err: err} }

// seal gives data its place in the run's chain.
func (l *eventLog) seal(data event.Data) (staged, error) {
	switch x := data.(type) {
	case event.CycleStart:
		l.cycle = x.Cycle
	case event.RunTerminatedBy, event.RunCompleted:
		l.cycle = 0
	}
	at, skipped := l.env.Clock.Stamp()
	s := staged{event: event.Event{
		Seq: l.seq + 1, Run: l.run.id, Parent: l.run.parent, Time: at.UTC().Truncate(time.Microsecond), SkippedMs: skipped.Milliseconds(),
		Cycle: l.cycle, Step: l.stepOf(data), Data: data, Prev: l.head,
	}}
	var err error
	if l.values {
		s.size, err = l.env.Record.Check(&s.event)
	} else {
		s.body, err = l.env.Record.Seal(&s.event)
		s.size = len(s.body)
	}
	if err != nil {
		return s, fmt.Errorf("engine: run %s: %w", l.run.id, err)
	}
	return s, nil
}

// stepOf returns the step that an event belongs to: the step in its payload,
// that of the child in its payload, or the run's own.
func (l *eventLog) stepOf(data event.Data) string {
	var child string
	switch x := data.(type) {
	case event.Stepped:
		return cmp.Or(x.OfStep(), l.run.step)
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
		return l.run.step
	}
	c, _ := l.children.Of(child)
	return cmp.Or(c.Step, l.run.step)
}

// push queues an event that has been applied.
func (l *eventLog) push(s staged) {
	l.staged = append(l.staged, s)
	head := ""
	if !l.values {
		head = event.Hash(s.body)
	}
	l.note(&s.event, head)
	l.env.Record.Blobs.Note(s.event.Data)
}

// pushAll queues events that the machine does not apply.
func (l *eventLog) pushAll(all []event.Data) error {
	for _, data := range all {
		s, err := l.seal(data)
		if err != nil {
			return err
		}
		l.push(s)
	}
	return nil
}

// startOver drops the staged events if they do not follow the last event on
// disk.
func (l *eventLog) startOver(row journal.Run) {
	if len(l.staged) == 0 || l.staged[0].event.Seq != row.Seq+1 {
		l.staged, l.seq, l.head = l.staged[:0], row.Seq, row.Head
	}
}

// empty reports whether there is nothing to commit.
func (l *eventLog) empty() bool { return len(l.staged) == 0 && len(l.consumed) == 0 }

// stages reports whether an event of a type waits for the next commit.
func (l *eventLog) stages(t event.Type) bool {
	return slices.ContainsFunc(l.staged, func(s staged) bool { return s.event.Type() == t })
}

// shareTexts replaces texts that occur more than once in the staged events by
// references.
func (l *eventLog) shareTexts() error {
	if !slices.ContainsFunc(l.staged, func(s staged) bool { _, ends := s.event.Data.(event.StepFinished); return ends }) {
		return nil
	}
	events := make([]*event.Event, len(l.staged))
	for i := range l.staged {
		events[i] = &l.staged[i].event
	}
	first := event.Dedupe(events)
	if first < 0 || l.values {
		return nil
	}
	head := l.staged[first].event.Prev
	for i := range l.staged[first:] {
		s := &l.staged[first+i]
		s.event.Prev = head
		body, err := event.Encode(&s.event)
		if err != nil {
			return fmt.Errorf("engine: run %s: %w", l.run.id, err)
		}
		s.body, head = body, event.Hash(body)
	}
	l.head = head
	return nil
}

// batch returns the staged events as a commit that changes the run's row to
// progress.
func (l *eventLog) batch(progress journal.Progress) journal.Batch {
	b := journal.Batch{Lease: l.lease.held, Head: l.head, Consumed: l.consumed, Status: progress, Time: l.last}
	b.Blobs = l.env.Record.Blobs.Take(func(yield func(event.Data) bool) {
		for i := range l.staged {
			if !yield(l.staged[i].event.Data) {
				return
			}
		}
	})
	b.Records = make([]journal.Record, len(l.staged))
	var values []event.Event
	if l.values {
		values = make([]event.Event, len(l.staged))
	}
	for i := range l.staged {
		s := &l.staged[i]
		b.Records[i] = journal.Record{Run: l.run.id, Seq: s.event.Seq, Type: string(s.event.Type()), Body: s.body}
		if l.values {
			values[i] = s.event
			b.Records[i].Event = &values[i]
		}
	}
	return b
}

// write appends a batch, or makes the run with it.
func (l *eventLog) write(ctx context.Context, b journal.Batch) (pos int64, err error) {
	if !l.lease.unmade {
		pos, err = l.store.Append(ctx, b)
	} else {
		pos, err = l.make(ctx, b)
	}
	if err != nil {
		return 0, l.failed(err)
	}
	l.lease.released = b.Release
	return pos, nil
}

// make makes the run with its first batch.
func (l *eventLog) make(ctx context.Context, b journal.Batch) (pos int64, err error) {
	asked, run := time.Now(), l.run
	b.Lease, b.Parent = l.lease.fresh(run.id, l.lease.held.Owner), l.lease.parent
	held, pos, err := l.store.Create(ctx, journal.Run{
		ID: run.id, Parent: run.parent, Root: run.root, Depth: run.depth, Kind: run.kind, Name: run.name, Created: l.last,
	}, b)
	if err != nil {
		return 0, fmt.Errorf("create it: %w", err)
	}
	l.lease.take(held, asked)
	return pos, nil
}

// publish publishes the events that are on disk now.
func (l *eventLog) publish(pos int64) {
	for i := range l.staged {
		e := &l.staged[i].event
		e.Pos = pos + int64(i)
		l.env.Deltas.Commit(e.Seq, e.Pos)
		l.observe(e)
	}
	l.follower.Publish(l.run.root, pos, len(l.staged), func(i int) follow.Event {
		return follow.Durable(l.staged[i].event, l.staged[i].size)
	})
	clear(l.staged)
	l.staged, l.consumed = l.staged[:0], nil
	l.growth.To(l.run.id, l.seq)
}

// observe calls the observers with an event that is on disk.
func (l *eventLog) observe(ev *event.Event) {
	if l.watching == nil && l.observers != nil {
		info := l.run.info()
		for _, o := range l.observers {
			if o.Run != nil {
				l.watching = append(l.watching, o.Run(info))
			}
		}
	}
	for _, watch := range l.watching {
		watch(ev)
	}
}

// fold is what a driver itself derives from a run's events. It does not depend
// on the machine, which may be broken.
type fold struct {
	// seq, head and last are the number, the hash and the time of the last event,
	// and cycle is its cycle.
	seq   int64
	head  string
	last  time.Time
	cycle int
	// The open calls of the last answer, children and commands.
	calls    drive.OpenCalls
	children drive.OpenChildren
	commands drive.OpenCommands
	cache    drive.Continuity
	paid     paid
	// secrets are the names of secrets in the journal, and messages the ids of the
	// messages that the run has.
	secrets  drive.DeclaredSecrets
	messages map[string]bool
	files    drive.SeenFiles
	servers  drive.ChangedServers
	sampled  drive.Sampled
	// waiting is what the run's row says of what it waits for.
	waiting drive.Waiting
}

// note folds an event whose body has this hash.
func (f *fold) note(ev *event.Event, hash string) {
	f.seq, f.head, f.last = ev.Seq, hash, ev.Time
	f.calls.Note(ev.Data)
	f.children.Note(ev.Data)
	f.commands.Note(ev.Data)
	f.paid.note(ev.Data)
	f.cache.Note(ev)
	f.secrets.Note(ev.Data)
	f.files.Note(ev.Data)
	f.servers.Note(ev.Data)
	f.sampled.Note(ev.Data)
	f.waiting.Note(ev)
	if said, ok := ev.Data.(event.InputReceived); ok && said.MessageID != "" {
		if f.messages == nil {
			f.messages = map[string]bool{}
		}
		f.messages[said.MessageID] = true
	}
}

func (d *driver) status() journal.Progress {
	s := d.machine.State()
	st := journal.Progress{State: journal.Running, Cycles: s.Cycle, Waits: d.log.waiting.Of(s)}
	switch {
	case d.log.lease.queued:
		st.State = journal.Queued
	case s.Phase == machine.Ended:
		st.State, st.Detail = journal.Ended, string(s.Outcome.Reason)
		st.Outcome, _ = json.Marshal(s.Outcome)
	case s.Parked != nil && s.Parked.Reason == event.ParkPaused:
		st.State, st.Detail = journal.Paused, string(s.Parked.Reason)
	case s.Parked != nil:
		st.State, st.Detail = journal.Parked, string(s.Parked.Reason)
	case d.alarm.waiting != "":
		st.State, st.Detail = journal.Waiting, d.alarm.waiting
	case s.Asking:
		st.State, st.Detail = journal.Waiting, string(event.ParkApproval)
	}
	return st
}
