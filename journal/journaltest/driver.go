package journaltest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// Epoch is the time of every event and row that this package writes.
func Epoch() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// Driver writes a run as an engine does: chained events under one lease. It must not be
// used by several goroutines.
type Driver struct {
	Store journal.Store
	Lease journal.Lease
	// Seq and Head belong to the last event written; First is the pos of the last
	// batch's first event.
	Seq   int64
	Head  string
	First int64

	parent string
	cycles int
}

// Start creates a run with its first event, run.started.
func Start(t testing.TB, s journal.Store, id string) *Driver {
	t.Helper()
	return StartBelow(t, s, id, journal.Run{})
}

// StartBelow creates a run as a child of another.
func StartBelow(t testing.TB, s journal.Store, id string, parent journal.Run) *Driver {
	t.Helper()
	return start(t, s, id, parent, event.RunStarted{Kind: "Agent", Name: "conformance"})
}

// StartOf creates a run with the given first event.
func StartOf(t testing.TB, s journal.Store, id string, started event.RunStarted) *Driver {
	t.Helper()
	return start(t, s, id, journal.Run{}, started)
}

func start(t testing.TB, s journal.Store, id string, parent journal.Run, started event.RunStarted) *Driver {
	t.Helper()
	d := &Driver{Store: s, parent: parent.ID}
	b := d.batch(t, id, started)
	b.Lease = journal.Lease{Run: id, Owner: "owner", Expiry: Epoch().Add(time.Minute)}
	row := journal.Run{ID: id, Kind: "Agent", Name: "conformance", Created: Epoch()}
	if parent.ID != "" {
		parent = parent.Placed()
		row.Parent, row.Root, row.Depth = parent.ID, parent.Root, parent.Depth+1
	}
	lease, pos, err := s.Create(t.Context(), row, b)
	if err != nil {
		t.Fatalf("create run %s: %v", id, err)
	}
	d.Lease, d.Seq, d.Head, d.First = lease, 1, b.Head, pos
	return d
}

// Batch makes the next batch of events without writing it.
func (d *Driver) Batch(t testing.TB, data ...event.Data) journal.Batch {
	t.Helper()
	return d.batch(t, d.Lease.Run, data...)
}

func (d *Driver) batch(t testing.TB, run string, data ...event.Data) journal.Batch {
	t.Helper()
	b := journal.Batch{
		Lease: d.Lease, Head: d.Head, Time: Epoch(), Status: journal.Progress{State: journal.Running, Cycles: d.cycles},
		Records: make([]journal.Record, len(data)),
	}
	for i, payload := range data {
		e := event.Event{Seq: d.Seq + int64(i) + 1, Run: run, Parent: d.parent, Time: Epoch(), Data: payload, Prev: b.Head}
		body, err := event.Encode(&e)
		if err != nil {
			t.Fatalf("encode event %d of run %s: %v", e.Seq, run, err)
		}
		b.Records[i] = journal.Record{Run: run, Seq: e.Seq, Type: string(e.Type()), Body: body}
		b.Head = event.Hash(body)
		d.note(t, &b.Status, payload)
	}
	return b
}

// note updates the run's row from an event.
func (d *Driver) note(t testing.TB, s *journal.Progress, data event.Data) {
	t.Helper()
	switch data := data.(type) {
	case event.CycleStart:
		d.cycles, s.Cycles = data.Cycle, data.Cycle
	case event.RunParked:
		s.State, s.Detail = journal.Parked, string(data.Reason)
	case event.RunCompleted:
		outcome, err := json.Marshal(data.Outcome)
		if err != nil {
			t.Fatal(err)
		}
		*s = journal.Progress{State: journal.Ended, Detail: string(data.Outcome.Reason), Cycles: data.Outcome.Cycles, Outcome: outcome}
	}
}

// Write appends a batch that [Driver.Batch] made and advances the driver.
func (d *Driver) Write(t testing.TB, b journal.Batch) error {
	t.Helper()
	pos, err := d.Store.Append(t.Context(), b)
	if err != nil {
		return err
	}
	d.Seq, d.Head, d.First = d.Seq+int64(len(b.Records)), b.Head, pos
	return nil
}

// Append writes the next events and fails the test on an error.
func (d *Driver) Append(t testing.TB, data ...event.Data) {
	t.Helper()
	if err := d.Write(t, d.Batch(t, data...)); err != nil {
		t.Fatalf("append to run %s: %v", d.Lease.Run, err)
	}
}

// End writes the run's last event.
func (d *Driver) End(t testing.TB) {
	t.Helper()
	d.Append(t, event.RunCompleted{Outcome: event.Outcome{Status: event.StatusCompleted, Reason: event.ReasonFinalAnswer, OK: true}})
}
