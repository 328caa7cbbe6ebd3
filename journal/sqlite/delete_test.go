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
	long(t, s, "long", 20_000)
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
			// transactions, of which 20,000 events take some eighty.
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
	tamper(t, path,
		`INSERT INTO deleted (rid, first, last) SELECT rid, first, last FROM runs WHERE id = 'first'`, `DELETE FROM runs WHERE id = 'first'`)
	if err := s.Delete(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{
		`SELECT count(*) FROM log`:       1,
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
