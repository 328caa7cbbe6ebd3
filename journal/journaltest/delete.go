package journaltest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

func deleteContract() []contract {
	return []contract{
		{"a driven run is not deleted", drivenStays},
		{"a deleted run leaves nothing but its positions", deletedIsGone},
		{"a position is never given twice", positionsStayUnique},
		{"a position is not given again when older runs are deleted after the newest", positionsOutliveOlderRuns},
		{"a blob goes with the last run that needs it", blobsGoWithTheLast},
		{"all blobs of a run go with it, however many", manyBlobsGo},
		{"prune deletes whole old trees and nothing that is alive", pruneTrees},
	}
}

// ended writes a run that has ended and has been released.
func ended(t *testing.T, s journal.Store, id, parent string, at time.Time) *Driver {
	t.Helper()
	d := &Driver{Store: s}
	b := d.batch(t, id, said("first"))
	b.Lease, b.Release, b.Time = journal.Lease{Run: id, Owner: "owner"}, true, at
	b.Status.State = journal.Ended
	lease, pos, err := s.Create(t.Context(), journal.Run{ID: id, Parent: parent, Kind: "Agent", Created: at}, b)
	if err != nil {
		t.Fatal(err)
	}
	d.Lease, d.Seq, d.Head, d.First = lease, 1, b.Head, pos
	return d
}

func drivenStays(t *testing.T, s journal.Store, c *clock) {
	d := Start(t, s, "a")
	before := look(t, s, "a")
	err := s.Delete(t.Context(), "a")
	if held, ok := errors.AsType[*journal.HeldError](err); !ok || held.Owner != "owner" {
		t.Errorf("got %v, want a HeldError that names owner", err)
	}
	if diff := cmp.Diff(before, look(t, s, "a")); diff != "" {
		t.Errorf("something went:\n%s", diff)
	}
	d.Append(t, said("goes on"))
	c.Advance(d.Lease.Expiry.Sub(c.Now()))
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Errorf("left behind by a driver that is gone: %v", err)
	}
	if err := s.Delete(t.Context(), "a"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("the second time: %v, want ErrNotFound", err)
	}
}

func deletedIsGone(t *testing.T, s journal.Store, c *clock) {
	a, b := Start(t, s, "a"), Start(t, s, "b")
	a.Append(t, slices.Repeat([]event.Data{said("to be forgotten")}, 700)...)
	b.Append(t, said("to be kept"))
	send(t, s, journal.Command{Run: "a", Kind: journal.Input, Text: "to be forgotten"})
	waiting := send(t, s, journal.Command{Run: "b", Kind: journal.Input, Text: "to be kept"})
	kept := look(t, s, "b")
	if err := s.Release(t.Context(), a.Lease); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), "a"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("its row: %v, want ErrNotFound", err)
	}
	if _, err := s.Records(t.Context(), "a", 0, 0); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("its records: %v, want ErrNotFound", err)
	}
	if _, err := s.Find(t.Context(), "a"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("its name: %v, want ErrNotFound", err)
	}
	if err := a.Write(t, a.Batch(t, said("too late"))); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("an append to it: %v, want ErrNotFound", err)
	}
	wantInbox(t, s, "", waiting)
	log, err := s.Tail(t.Context(), 0, 0)
	for i := range log {
		log[i].Root = ""
	}
	if diff := cmp.Diff(kept.Records, log); err != nil || diff != "" {
		t.Errorf("the tail (-want +got): %v\n%s", err, diff)
	}
	if rows, err := s.Runs(t.Context(), journal.Filter{}); err != nil || len(rows) != 1 {
		t.Errorf("%d runs listed, %v", len(rows), err)
	}
	again := Start(t, s, "a")
	again.Append(t, said("a new life"))
	if got := look(t, s, "a"); len(got.Records) != 2 || len(got.Inbox) != 0 {
		t.Errorf("a new run of the same name begins with %+v", got)
	}
	if diff := cmp.Diff(kept, look(t, s, "b")); diff != "" {
		t.Errorf("the run beside it changed:\n%s", diff)
	}
}

func positionsStayUnique(t *testing.T, s journal.Store, _ *clock) {
	seen := map[int64]bool{}
	last := int64(0)
	for range 4 {
		d := ended(t, s, "a", "", Epoch())
		if seen[d.First] || d.First <= last {
			t.Fatalf("pos %d after %d", d.First, last)
		}
		seen[d.First], last = true, d.First
		if err := s.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
}

func positionsOutliveOlderRuns(t *testing.T, s journal.Store, _ *clock) {
	for _, id := range []string{"a", "b", "c"} {
		ended(t, s, id, "", Epoch())
	}
	last := ended(t, s, "last", "", Epoch()).First
	for _, id := range []string{"last", "c", "b", "a"} {
		if err := s.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if next := ended(t, s, "next", "", Epoch()).First; next <= last {
		t.Errorf("pos %d is given after %d was", next, last)
	}
}

func manyBlobsGo(t *testing.T, s journal.Store, c *clock) {
	blobs := make([]journal.Blob, 100)
	for i := range blobs {
		blobs[i] = journal.NewBlob([]byte{byte(i)})
	}
	kept := blobs[10:20]
	for id, named := range map[string][]journal.Blob{"a": blobs, "b": kept} {
		d := Start(t, s, id)
		b := d.Batch(t, said("see the blobs"))
		b.Blobs = named
		if err := d.Write(t, b); err != nil {
			t.Fatal(err)
		}
	}
	c.Advance(time.Hour)
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, blob := range blobs {
		switch _, err := s.Blob(t.Context(), blob.Digest); {
		case err == nil:
			left++
		case !errors.Is(err, journal.ErrNotFound):
			t.Fatal(err)
		}
	}
	if left != len(kept) {
		t.Errorf("%d blobs are left, want the %d that another run named", left, len(kept))
	}
	for _, blob := range kept {
		if _, err := s.Blob(t.Context(), blob.Digest); err != nil {
			t.Error(err)
		}
	}
}

func blobsGoWithTheLast(t *testing.T, s journal.Store, c *clock) {
	shared := journal.Blob{Digest: "shared", Bytes: []byte("of both")}
	for _, id := range []string{"a", "b"} {
		d := Start(t, s, id)
		b := d.Batch(t, said("see the blob"))
		b.Blobs = []journal.Blob{shared, {Digest: "of " + id, Bytes: []byte(id)}}
		if err := d.Write(t, b); err != nil {
			t.Fatal(err)
		}
	}
	c.Advance(time.Hour)
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Blob(t.Context(), "of a"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("a's own blob: %v, want ErrNotFound", err)
	}
	for _, digest := range []string{"shared", "of b"} {
		if _, err := s.Blob(t.Context(), digest); err != nil {
			t.Errorf("blob %q, which b needs: %v", digest, err)
		}
	}
	if err := s.Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Blob(t.Context(), "shared"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("an unreferenced blob: %v, want ErrNotFound", err)
	}
}

func pruneTrees(t *testing.T, s journal.Store, c *clock) {
	old, cut, fresh := Epoch(), Epoch().Add(time.Hour), Epoch().Add(2*time.Hour)
	ended(t, s, "old", "", old)
	ended(t, s, "root", "", old)
	ended(t, s, "child", "root", old)
	ended(t, s, "grandchild", "child", old)
	ended(t, s, "forked", "", old)
	ended(t, s, "fork", "forked", fresh)
	ended(t, s, "fresh", "", fresh)
	ended(t, s, "orphan", "gone", old)
	Start(t, s, "alive")
	c.Advance(24 * time.Hour)
	would, err := journal.Prune(t.Context(), s, journal.PruneOptions{Before: cut, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.Runs(t.Context(), journal.Filter{})
	if err != nil || len(rows) != 9 {
		t.Fatalf("a dry run left %d of 9 runs, %v", len(rows), err)
	}
	did, err := journal.Prune(t.Context(), s, journal.PruneOptions{Before: cut})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"orphan", "grandchild", "child", "root", "old"}
	for name, got := range map[string][]journal.Run{"dry run": would, "prune": did} {
		var ids []string
		for _, r := range got {
			ids = append(ids, r.ID)
		}
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, id := range []string{"forked", "fork", "fresh", "alive"} {
		if _, err := s.Run(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if rows, err := s.Runs(t.Context(), journal.Filter{}); err != nil || len(rows) != 4 {
		t.Errorf("%d runs are left, %v; want 4", len(rows), err)
	}
	// The lease expires a minute after the last write.
	abandoned := journal.PruneOptions{States: []journal.State{journal.Running}, Before: Epoch().Add(time.Second)}
	for _, want := range []int{0, 1} {
		if got, err := journal.Prune(t.Context(), s, abandoned); err != nil || len(got) != want {
			t.Errorf("running runs older than %s: %d are pruned, %v; want %d", abandoned.Before, len(got), err, want)
		}
		abandoned.Before = cut
	}
}
