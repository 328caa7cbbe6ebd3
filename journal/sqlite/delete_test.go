package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// long writes a run of many events, with a blob of its own, and lets it go.
func long(t *testing.T, s *sqlite.Store, id string, events int) {
	t.Helper()
	d := journaltest.Start(t, s, id)
	b := d.Batch(t, slices.Repeat(texts(1), events)...)
	b.Release = true
	b.Blobs = []journal.Blob{{Digest: "of " + id, Bytes: []byte(id)}, {Digest: "shared", Bytes: []byte("shared")}}
	if err := d.Write(t, b); err != nil {
		t.Fatal(err)
	}
}

// count asks the file itself.
func count(t *testing.T, path, query string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOthersWriteWhileALongRunIsDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path)
	long(t, s, "long", 300_000)
	d := journaltest.Start(t, s, "busy")
	done := make(chan error)
	go func() { done <- s.Delete(t.Context(), "long") }()
	meanwhile := 0
	for deleting := true; deleting; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			deleting = false
		default:
			// A run that is half deleted is seen by others only between two
			// transactions, of which 300,000 events take some seventy.
			half := count(t, path, `SELECT count(*) FROM deleted`) == 1
			d.Append(t, event.InputReceived{Text: "meanwhile"})
			if half && count(t, path, `SELECT count(*) FROM deleted`) == 1 {
				meanwhile++
			}
		}
	}
	if meanwhile == 0 {
		t.Error("no append came through while a run was half deleted")
	}
	t.Logf("%d appends came through while a run was half deleted", meanwhile)
	intact(t, s, d)
}

func TestTheNextDeletionFinishesOneThatACrashCutShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path)
	long(t, s, "first", 600)
	long(t, s, "second", 10)
	kept := journaltest.Start(t, s, "kept")
	if n := count(t, path, `SELECT count(*) FROM blobs`); n != 3 {
		t.Errorf("%d blobs, want 3: one is of both runs", n)
	}
	hide(t, path, "first")
	if err := s.Delete(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{
		`SELECT count(*) FROM commits`:   1,
		`SELECT count(*) FROM heads`:     1,
		`SELECT count(*) FROM blobs`:     0,
		`SELECT count(*) FROM blob_runs`: 0,
		`SELECT count(*) FROM deleted`:   0,
	} {
		if n := count(t, path, query); n != want {
			t.Errorf("%s is %d, want %d", query, n, want)
		}
	}
	intact(t, s, kept)
}

// hide begins the deletion of a run as a process does that is killed before it
// has freed anything.
func hide(t *testing.T, path, run string) {
	t.Helper()
	tamper(t, path,
		`INSERT INTO deleted (rid, first, last) SELECT rid, first, last FROM runs JOIN heads USING (rid) WHERE id = '`+run+`'`,
		`DELETE FROM heads WHERE rid = (SELECT rid FROM runs WHERE id = '`+run+`')`, `DELETE FROM runs WHERE id = '`+run+`'`)
}

// Each keeps its own account of how far it has come, wherever the events of
// the runs lie among each other's.
func TestDeletionsThatWereCutShortDoNotForgetEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path)
	long(t, s, "buried", 1)
	if err := s.Delete(t.Context(), "buried"); err != nil {
		t.Fatal(err)
	}
	first, second := journaltest.Start(t, s, "first"), journaltest.Start(t, s, "second")
	second.Append(t, texts(10)...)
	first.Append(t, slices.Repeat(texts(1), 3000)...)
	second.Append(t, texts(10)...)
	long(t, s, "third", 10)
	kept := journaltest.Start(t, s, "kept")
	hide(t, path, "first")
	hide(t, path, "second")
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("amid the deletions: %v", err)
	}
	if err := s.Delete(t.Context(), "third"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, path, `SELECT count(*) FROM commits`); n != 1 {
		t.Errorf("%d events are left, want the one of the run that stays", n)
	}
	if n := count(t, path, `SELECT count(*) FROM deleted`); n != 0 {
		t.Errorf("%d deletions are unfinished", n)
	}
	intact(t, s, kept)
}

// One row keeps the newest pos from being given again, and no more than that
// stays of however many runs.
func TestDeletedRunsLeaveOneRowAtMost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path)
	for i := range 4 {
		long(t, s, "a", 3)
		long(t, s, "b", 3)
		order := []string{"a", "b"}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, id := range order {
			if err := s.Delete(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		if n := count(t, path, `SELECT count(*) FROM commits WHERE rid = 0 AND events = 0 AND kinds = 0 AND body = x''`); n != 1 {
			t.Errorf("%d empty rows, want 1", n)
		}
		if n := count(t, path, `SELECT count(*) FROM commits`); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
		if err := s.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
	kept := journaltest.Start(t, s, "kept")
	long(t, s, "a", 3)
	kept.Append(t, texts(1)...)
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, path, `SELECT count(*) FROM commits`); n != 2 {
		t.Errorf("%d rows, want those of the run that stays", n)
	}
	if n := count(t, path, `SELECT count(*) FROM deleted`); n != 0 {
		t.Errorf("%d rows are noted as buried, want none", n)
	}
	intact(t, s, kept)
}

func TestADeletedRunLeavesNoEventHoweverFarApartTheyLie(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path)
	d, kept := journaltest.Start(t, s, "a"), journaltest.Start(t, s, "kept")
	for range 3 {
		d.Append(t, texts(2)...)
		kept.Append(t, slices.Repeat(texts(1), 1500)...)
	}
	d.End(t)
	if err := s.Release(t.Context(), d.Lease); err != nil {
		t.Fatal(err)
	}
	kept.Append(t, texts(1)...)
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, path, `SELECT sum(events) FROM commits`); n != int(kept.Seq) {
		t.Errorf("%d events are left, want the %d of the run that stays", n, kept.Seq)
	}
	intact(t, s, kept)
}

// A process remembers the numbers of its runs' rows. The number of a run that
// another one deleted never comes to mean a later run.
func TestARunThatAnotherProcessDeletedTakesNothingMore(t *testing.T) {
	for name, data := range map[string][]event.Data{"an event": texts(1), "a state": nil} {
		t.Run(name, func(t *testing.T) {
			path, s, d := begun(t)
			other := open(t, path)
			if err := s.Release(t.Context(), d.Lease); err != nil {
				t.Fatal(err)
			}
			if err := other.Delete(t.Context(), d.Lease.Run); err != nil {
				t.Fatal(err)
			}
			next := journaltest.Start(t, other, "b")
			if err := d.Write(t, d.Batch(t, data...)); !errors.Is(err, journal.ErrNotFound) {
				t.Errorf("error %v, want ErrNotFound", err)
			}
			next.End(t)
			if _, err := journal.Verify(t.Context(), other, "b", next.Head); err != nil {
				t.Error(err)
			}
		})
	}
}
