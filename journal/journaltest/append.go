package journaltest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

func appendContract() []contract {
	return []contract{
		{"numbers count without gaps and what was written is what is read", roundTrip},
		{"a run is created once", createdOnce},
		{"a refused append writes nothing", refusedWritesNothing},
		{"an ended run takes nothing more", endedTakesNothing},
		{"a blob is stored once", blobOnce},
		{"an append may release the lease", appendReleases},
		{"a status without events is kept", statusAlone},
		{"what a run waits for is kept with its row", waitsKept},
		{"a batch may have many events", manyAtOnce},
		{"a run may be created with several events, behind many of others", createdWithSeveral},
	}
}

func roundTrip(t *testing.T, s journal.Store, _ *clock) {
	a, b := Start(t, s, "a"), Start(t, s, "b")
	var want []journal.Record
	for range 5 {
		batch := a.Batch(t, said("one"), said("two"), said("three"))
		if err := a.Write(t, batch); err != nil {
			t.Fatal(err)
		}
		for i, r := range batch.Records {
			r.Pos = a.First + int64(i)
			want = append(want, r)
		}
		b.Append(t, said("in between"))
	}
	got := all(t, s, "a", 4)
	if diff := cmp.Diff(want, got[1:]); diff != "" {
		t.Errorf("records (-written +read):\n%s", diff)
	}
	for i, r := range got {
		if r.Seq != int64(i)+1 {
			t.Errorf("record %d has seq %d", i, r.Seq)
		}
	}
	log, err := s.Tail(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(log) != 22 {
		t.Errorf("%d records in all, want 22", len(log))
	}
	for i, r := range log {
		if r.Pos != log[0].Pos+int64(i) {
			t.Errorf("record %d has pos %d after %d", i, r.Pos, log[0].Pos)
		}
	}
	if v, err := journal.Verify(t.Context(), s, "a", a.Head); err != nil || v.Events != 16 {
		t.Errorf("verify: %+v, %v", v, err)
	}
}

func manyAtOnce(t *testing.T, s journal.Store, _ *clock) {
	d := Start(t, s, "a")
	var want []journal.Record
	for _, size := range []int{1, 7, 8, 9, 16, 40} {
		batch := d.Batch(t, slices.Repeat([]event.Data{said("many")}, size)...)
		if err := d.Write(t, batch); err != nil {
			t.Fatal(err)
		}
		for i, r := range batch.Records {
			r.Pos = d.First + int64(i)
			want = append(want, r)
		}
	}
	if diff := cmp.Diff(want, all(t, s, "a", 100)[1:]); diff != "" {
		t.Errorf("records (-written +read):\n%s", diff)
	}
}

func createdOnce(t *testing.T, s journal.Store, _ *clock) {
	d := Start(t, s, "a")
	before := look(t, s, "a")
	second := &Driver{Store: s}
	b := second.batch(t, "a", said("again"))
	b.Lease = journal.Lease{Run: "a", Owner: "other"}
	if _, _, err := s.Create(t.Context(), journal.Run{ID: "a", Kind: "Agent"}, b); !errors.Is(err, journal.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	gap := &Driver{Store: s, Seq: 1}
	b = gap.batch(t, "b", said("not the first"))
	b.Lease = journal.Lease{Run: "b", Owner: "other"}
	if _, _, err := s.Create(t.Context(), journal.Run{ID: "b", Kind: "Agent"}, b); err == nil {
		t.Error("a run was created whose first event is number 2")
	}
	if _, err := s.Run(t.Context(), "b"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("run b: %v, want ErrNotFound", err)
	}
	if diff := cmp.Diff(before, look(t, s, "a")); diff != "" {
		t.Errorf("a changed:\n%s", diff)
	}
	d.Append(t, said("goes on"))
}

func refusedWritesNothing(t *testing.T, s journal.Store, c *clock) {
	for name, spoil := range map[string]func(*journal.Batch){
		"older epoch":        func(b *journal.Batch) { b.Lease.Epoch-- },
		"newer epoch":        func(b *journal.Batch) { b.Lease.Epoch++ },
		"another owner":      func(b *journal.Batch) { b.Lease.Owner = "thief" },
		"number again":       func(b *journal.Batch) { b.Records[0].Seq--; b.Records[1].Seq-- },
		"number left out":    func(b *journal.Batch) { b.Records[0].Seq++; b.Records[1].Seq++ },
		"hole in the middle": func(b *journal.Batch) { b.Records[1].Seq++ },
	} {
		t.Run(name, func(t *testing.T) {
			id := "run " + name
			d := Start(t, s, id)
			cmd, err := s.Send(t.Context(), journal.Command{Run: id, Kind: journal.Input, Text: "hello"})
			if err != nil {
				t.Fatal(err)
			}
			before := look(t, s, id)
			b := d.Batch(t, said("one"), said("two"))
			b.Consumed, b.Release = []int64{cmd}, true
			b.Blobs = []journal.Blob{{Digest: name, Bytes: []byte("x")}}
			spoil(&b)
			if err := d.Write(t, b); !errors.Is(err, journal.ErrStale) {
				t.Errorf("got %v, want ErrStale", err)
			}
			if diff := cmp.Diff(before, look(t, s, id)); diff != "" {
				t.Errorf("something was written:\n%s", diff)
			}
			if _, err := s.Blob(t.Context(), name); !errors.Is(err, journal.ErrNotFound) {
				t.Errorf("its blob: %v, want ErrNotFound", err)
			}
			d.Append(t, said("the holder goes on"))
		})
	}
	d := &Driver{Store: s, Lease: journal.Lease{Run: "none", Owner: "owner", Epoch: 1}}
	if err := d.Write(t, d.Batch(t, said("one"))); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("append to a run that is not there: %v, want ErrNotFound", err)
	}
}

func endedTakesNothing(t *testing.T, s journal.Store, _ *clock) {
	d := Start(t, s, "a")
	d.End(t)
	before := look(t, s, "a")
	if before.Row.State != journal.Ended || before.Row.Detail != string(event.ReasonFinalAnswer) {
		t.Errorf("the row says %s %s", before.Row.State, before.Row.Detail)
	}
	if err := d.Write(t, d.Batch(t, said("more"))); !errors.Is(err, journal.ErrEnded) {
		t.Errorf("append: %v, want ErrEnded", err)
	}
	if _, err := s.Send(t.Context(), journal.Command{Run: "a", Kind: journal.Cancel}); !errors.Is(err, journal.ErrEnded) {
		t.Errorf("send: %v, want ErrEnded", err)
	}
	if diff := cmp.Diff(before, look(t, s, "a"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("something was written:\n%s", diff)
	}
}

func blobOnce(t *testing.T, s journal.Store, _ *clock) {
	for _, id := range []string{"a", "b"} {
		d := Start(t, s, id)
		b := d.Batch(t, said("see the blob"))
		b.Blobs = []journal.Blob{{Digest: "d1", Bytes: []byte("content")}, {Digest: "d2 of " + id, Bytes: nil}}
		if err := d.Write(t, b); err != nil {
			t.Fatal(err)
		}
	}
	for digest, want := range map[string]string{"d1": "content", "d2 of a": "", "d2 of b": ""} {
		if got, err := s.Blob(t.Context(), digest); err != nil || string(got) != want {
			t.Errorf("blob %s: %q, %v; want %q", digest, got, err, want)
		}
	}
	if _, err := s.Blob(t.Context(), "d3"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("a blob that is not there: %v, want ErrNotFound", err)
	}
}

func appendReleases(t *testing.T, s journal.Store, _ *clock) {
	d := Start(t, s, "a")
	b := d.Batch(t, said("parked"))
	b.Release = true
	if err := d.Write(t, b); err != nil {
		t.Fatal(err)
	}
	if row := look(t, s, "a").Row; row.Owner != "" {
		t.Errorf("still held by %s", row.Owner)
	}
	if err := d.Write(t, d.Batch(t, said("too late"))); !errors.Is(err, journal.ErrStale) {
		t.Errorf("append after release: %v, want ErrStale", err)
	}
	made := (&Driver{}).batch(t, "b", said("made for another run"))
	made.Lease, made.Release = journal.Lease{Run: "b", Owner: "owner", Expiry: Epoch().Add(time.Minute)}, true
	if _, _, err := s.Create(t.Context(), journal.Run{ID: "b", Kind: "Agent", Created: Epoch()}, made); err != nil {
		t.Fatal(err)
	}
	if row := look(t, s, "b").Row; row.Owner != "" {
		t.Errorf("released by its first batch, still held by %s", row.Owner)
	}
}

func statusAlone(t *testing.T, s journal.Store, _ *clock) {
	Start(t, s, "before")
	d := Start(t, s, "a")
	Start(t, s, "behind")
	d.Append(t, slices.Repeat([]event.Data{said("one of many")}, 1500)...)
	b := d.Batch(t)
	b.Status = journal.Progress{State: journal.Parked, Detail: "interrupted", Cycles: 3}
	if err := d.Write(t, b); err != nil {
		t.Fatal(err)
	}
	after := look(t, s, "a")
	if diff := cmp.Diff(b.Status, after.Row.Progress); diff != "" || after.Row.Seq != d.Seq || after.Row.Head != d.Head {
		t.Errorf("row %+v:\n%s", after.Row, diff)
	}
	if n := int64(len(after.Records)); n != d.Seq {
		t.Errorf("%d of %d events are read behind it", n, d.Seq)
	}
	d.Append(t, said("goes on"))
}

func createdWithSeveral(t *testing.T, s journal.Store, _ *clock) {
	Start(t, s, "before").Append(t, slices.Repeat([]event.Data{said("one of many")}, 1500)...)
	d := &Driver{Store: s}
	b := d.batch(t, "a", said("first"), said("second"), said("third"))
	b.Lease = journal.Lease{Run: "a", Owner: "owner", Expiry: Epoch().Add(time.Minute)}
	if _, _, err := s.Create(t.Context(), journal.Run{ID: "a", Kind: "Agent", Created: Epoch()}, b); err != nil {
		t.Fatal(err)
	}
	for after := range int64(4) {
		got, err := s.Records(t.Context(), "a", after, 0)
		if diff := cmp.Diff(b.Records[after:], got, cmpopts.IgnoreFields(journal.Record{}, "Pos"), cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("after %d (-want +got): %v\n%s", after, err, diff)
		}
	}
}

// waitsKept checks every method that reads a row after every method that writes it:
// unknown and nothing stay distinct.
func waitsKept(t *testing.T, s journal.Store, _ *clock) {
	until := Epoch().Add(time.Hour)
	asks := &journal.Waits{
		Questions: []journal.Wait{{ID: "a", Kind: event.QuestionCall, Seq: 2, Digest: "d", ExpiresAt: &until}, {ID: "b", Kind: event.QuestionGoal, Seq: 3, Message: true}},
		Parked:    &event.RunParked{Reason: event.ParkInput, CallIDs: []string{"a"}, ParentLimit: "above", LimitRun: "root", AtLeast: 2.5},
		Refused:   true, Message: true, Expired: true, Raised: map[string]float64{"limit": 80}, Children: []string{"c"},
	}
	made := (&Driver{}).batch(t, "a", said("first"))
	made.Lease, made.Status.Waits = journal.Lease{Run: "a", Owner: "owner", Expiry: Epoch().Add(time.Minute)}, asks
	lease, _, err := s.Create(t.Context(), journal.Run{ID: "a", Kind: "Agent", Created: Epoch()}, made)
	if err != nil {
		t.Fatal(err)
	}
	check := func(want *journal.Waits) {
		t.Helper()
		found, err := s.Find(t.Context(), "a")
		listed, listErr := s.Runs(t.Context(), journal.Filter{})
		if err != nil || listErr != nil || len(listed) != 1 {
			t.Fatal(err, listErr, len(listed))
		}
		for place, row := range map[string]journal.Run{"run": look(t, s, "a").Row, "find": found, "list": listed[0]} {
			if diff := cmp.Diff(want, row.Waits); diff != "" {
				t.Errorf("%s (-written +read):\n%s", place, diff)
			}
		}
	}
	check(asks)
	d := &Driver{Store: s, Lease: lease, Seq: 1, Head: made.Head}
	for _, want := range []*journal.Waits{{}, asks, nil, {Children: []string{"c"}}, {Raised: map[string]float64{"limit": -1}}, {}} {
		b := d.Batch(t, said("next"))
		b.Status.Waits = want
		if err := d.Write(t, b); err != nil {
			t.Fatal(err)
		}
		check(want)
	}
	b := d.Batch(t)
	b.Status.Waits = asks
	if err := d.Write(t, b); err != nil {
		t.Fatal(err)
	}
	check(asks)
	b = d.Batch(t, said("refused"))
	b.Lease.Epoch++
	b.Status.Waits = nil
	if err := d.Write(t, b); !errors.Is(err, journal.ErrStale) {
		t.Fatal(err)
	}
	check(asks)
}
