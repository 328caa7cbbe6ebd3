package journaltest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

func forkContract() []contract {
	return []contract{
		{"a fork shares the events of its run and goes on alone", forkShares},
		{"a fork of a fork reads through both", forkOfFork},
		{"a fork needs the event that it goes on from", forkNeedsEvent},
		{"a run that has forks is not deleted", forkedStays},
		{"a run is not pruned before its forks", forksGoFirst},
		{"verify follows a fork's chain through its run", verifyFork},
	}
}

// Fork creates a fork of a run after one of its events.
func Fork(t testing.TB, s journal.Store, id, of string, seq int64) *Driver {
	t.Helper()
	d, b := forkBatch(t, s, id, of, seq)
	lease, pos, err := s.Create(t.Context(), journal.Run{ID: id, ForkOf: of, ForkSeq: seq, Kind: "Agent", Name: "conformance", Created: Epoch()}, b)
	if err != nil {
		t.Fatalf("fork run %s at %d: %v", of, seq, err)
	}
	d.Lease, d.Seq, d.Head, d.First = lease, seq+1, b.Head, pos
	return d
}

func forkBatch(t testing.TB, s journal.Store, id, of string, seq int64) (*Driver, journal.Batch) {
	t.Helper()
	records, err := s.Records(t.Context(), of, seq-1, 1)
	if err != nil || len(records) != 1 {
		t.Fatalf("event %d of run %s: %d records, %v", seq, of, len(records), err)
	}
	d := &Driver{Store: s, Seq: seq, Head: event.Hash(records[0].Body)}
	b := d.batch(t, id, event.RunForked{From: of, Seq: seq, Hash: d.Head})
	b.Lease = journal.Lease{Run: id, Owner: "owner", Expiry: Epoch().Add(time.Minute)}
	return d, b
}

// place identifies a record.
type place struct {
	Run string
	Seq int64
}

func places(records []journal.Record) []place {
	out := make([]place, len(records))
	for i, r := range records {
		out[i] = place{r.Run, r.Seq}
	}
	return out
}

func forkShares(t *testing.T, s journal.Store, _ *clock) {
	a := Start(t, s, "a")
	a.Append(t, said("two"), said("three"), said("four"))
	f := Fork(t, s, "f", "a", 3)
	f.Append(t, said("another end"))
	a.Append(t, said("five"))
	want := []place{{"a", 1}, {"a", 2}, {"a", 3}, {"f", 4}, {"f", 5}}
	for page := range 7 {
		got := all(t, s, "f", page)
		if diff := cmp.Diff(want, places(got)); diff != "" {
			t.Errorf("in pages of %d (-want +got):\n%s", page, diff)
		}
	}
	for after := int64(-1); after <= 5; after++ {
		got, err := s.Records(t.Context(), "f", after, 0)
		if diff := cmp.Diff(want[max(after, 0):], places(got)); err != nil || diff != "" {
			t.Errorf("after %d: %v (-want +got):\n%s", after, err, diff)
		}
	}
	if shared, own := all(t, s, "a", 0), all(t, s, "f", 0); !cmp.Equal(shared[:3], own[:3]) {
		t.Error("what the fork shares is not what the run holds")
	}
	if got := len(all(t, s, "a", 0)); got != 5 {
		t.Errorf("the run has %d events, want its own 5", got)
	}
	row, err := s.Run(t.Context(), "f")
	if err != nil || row.ForkOf != "a" || row.ForkSeq != 3 || row.Seq != 5 || row.Head != f.Head {
		t.Errorf("the fork's row is %+v, %v", row, err)
	}
	forks, err := s.Runs(t.Context(), journal.Filter{ForkOf: "a"})
	if err != nil || len(forks) != 1 || forks[0].ID != "f" {
		t.Errorf("the forks of a are %+v, %v", forks, err)
	}
	log, err := s.Tail(t.Context(), 0, 0)
	if err != nil || len(log) != 7 {
		t.Errorf("the log has %d events, %v; want 7, because none is copied", len(log), err)
	}
}

func forkOfFork(t *testing.T, s journal.Store, _ *clock) {
	a := Start(t, s, "a")
	a.Append(t, said("two"), said("three"))
	b := Fork(t, s, "b", "a", 2)
	b.Append(t, said("four"))
	Fork(t, s, "c", "b", 4).Append(t, said("six"))
	want := []place{{"a", 1}, {"a", 2}, {"b", 3}, {"b", 4}, {"c", 5}, {"c", 6}}
	for page := range 7 {
		if diff := cmp.Diff(want, places(all(t, s, "c", page))); diff != "" {
			t.Errorf("in pages of %d (-want +got):\n%s", page, diff)
		}
	}
	line, err := journal.Lineage(t.Context(), s, "c")
	wantLine := []journal.Stretch{{Run: "a", From: 0, To: 2}, {Run: "b", From: 2, To: 4}, {Run: "c", From: 4, To: 6}}
	if diff := cmp.Diff(wantLine, line); err != nil || diff != "" {
		t.Errorf("the lineage: %v (-want +got):\n%s", err, diff)
	}
}

func forkNeedsEvent(t *testing.T, s journal.Store, _ *clock) {
	Start(t, s, "a")
	_, b := forkBatch(t, s, "f", "a", 1)
	for name, row := range map[string]journal.Run{
		"a run that is not there": {ID: "f", ForkOf: "b", ForkSeq: 1},
		"an event to come":        {ID: "f", ForkOf: "a", ForkSeq: 2},
	} {
		batch := b
		batch.Records = []journal.Record{b.Records[0]}
		batch.Records[0].Seq = row.ForkSeq + 1
		if _, _, err := s.Create(t.Context(), row, batch); !errors.Is(err, journal.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
	if _, _, err := s.Create(t.Context(), journal.Run{ID: "f", ForkOf: "a"}, b); !errors.Is(err, journal.ErrStale) {
		t.Errorf("a hole behind what is shared: %v, want ErrStale", err)
	}
	if _, err := s.Run(t.Context(), "f"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("a fork that was refused is there: %v", err)
	}
}

func forkedStays(t *testing.T, s journal.Store, c *clock) {
	Start(t, s, "a")
	Fork(t, s, "g", "a", 1)
	Fork(t, s, "f", "a", 1)
	c.Advance(time.Hour)
	before := look(t, s, "a")
	err := s.Delete(t.Context(), "a")
	forked, ok := errors.AsType[*journal.ForkedError](err)
	if !ok || !cmp.Equal(forked.Forks, []string{"f", "g"}) {
		t.Errorf("got %v, want a ForkedError that names f and g", err)
	}
	if diff := cmp.Diff(before, look(t, s, "a")); diff != "" {
		t.Errorf("something went:\n%s", diff)
	}
	for _, id := range []string{"f", "g", "a"} {
		if err := s.Delete(t.Context(), id); err != nil {
			t.Errorf("delete %s: %v", id, err)
		}
	}
}

func forksGoFirst(t *testing.T, s journal.Store, c *clock) {
	for _, id := range []string{"young", "old"} {
		ended(t, s, id, "", Epoch())
		fork := Fork(t, s, id+" fork", id, 1)
		b := fork.Batch(t, said("the end"))
		b.Status.State, b.Release = journal.Ended, true
		if id == "young" {
			b.Time = Epoch().Add(2 * time.Hour)
		}
		if err := fork.Write(t, b); err != nil {
			t.Fatal(err)
		}
	}
	c.Advance(24 * time.Hour)
	gone, err := journal.Prune(t.Context(), s, journal.PruneOptions{Before: Epoch().Add(time.Hour)})
	if err != nil || len(gone) != 2 || gone[0].ID != "old fork" || gone[1].ID != "old" {
		t.Errorf("pruned %+v, %v; want the old fork, then its run", gone, err)
	}
	// No run depends on a fork of a fork, so only its own state decides whether it is
	// pruned.
	last := Fork(t, s, "last", "young fork", 1)
	b := last.Batch(t, said("still there"))
	b.Status.State, b.Release, b.Time = journal.Queued, true, Epoch()
	if err := last.Write(t, b); err != nil {
		t.Fatal(err)
	}
	options := journal.PruneOptions{Before: Epoch().Add(time.Hour)}
	if gone, err := journal.Prune(t.Context(), s, options); err != nil || len(gone) != 0 {
		t.Errorf("pruned %+v, %v; want nothing: a fork that has not ended stands on them", gone, err)
	}
	options.States = []journal.State{journal.Queued}
	if gone, err := journal.Prune(t.Context(), s, options); err != nil || len(gone) != 1 || gone[0].ID != "last" {
		t.Errorf("pruned %+v, %v; want the fork that was never driven", gone, err)
	}
}

func verifyFork(t *testing.T, s journal.Store, _ *clock) {
	a := Start(t, s, "a")
	a.Append(t, said("two"), said("three"))
	Fork(t, s, "b", "a", 2).Append(t, said("four"))
	Fork(t, s, "c", "b", 4).End(t)
	v, err := journal.Verify(t.Context(), s, "c", a.Head)
	if err == nil {
		t.Errorf("the head of another line was found: %+v", v)
	}
	row, err := s.Run(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	v, err = journal.Verify(t.Context(), s, "c", row.Head)
	if err != nil || v.Events != 6 || v.HeadSeq != 4 {
		t.Errorf("verify: %+v, %v; want 6 events, and b's head at 4", v, err)
	}
	// The first event names another base than the row.
	d, b := forkBatch(t, s, "", "a", 2)
	for id, lie := range map[string]struct {
		says event.Data
		on   string
	}{
		"on another event":  {event.RunForked{From: "a", Seq: 2, Hash: d.Head}, b.Head},
		"of another event":  {event.RunForked{From: "a", Seq: 2, Hash: "0"}, d.Head},
		"at another event":  {event.RunForked{From: "a", Seq: 1, Hash: d.Head}, d.Head},
		"of another run":    {event.RunForked{From: "b", Seq: 2, Hash: d.Head}, d.Head},
		"without saying so": {said("three"), d.Head},
	} {
		wrong := &Driver{Store: s, Seq: 2, Head: lie.on}
		first := wrong.batch(t, id, lie.says)
		first.Lease = b.Lease
		first.Lease.Run = id
		if _, _, err := s.Create(t.Context(), journal.Run{ID: id, ForkOf: "a", ForkSeq: 2}, first); err != nil {
			t.Fatal(err)
		}
		if damage, ok := errors.AsType[*journal.CorruptError](verified(t, s, id)); !ok || damage.Seq != 2 && damage.Seq != 3 {
			t.Errorf("a fork %s: %v", id, damage)
		}
	}
}

func verified(t *testing.T, s journal.Store, id string) error {
	_, err := journal.Verify(t.Context(), s, id, "")
	return err
}
