package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/journal/journaltest"
)

const logFrame = 24 + 4096

// A commit that makes the log longer waits twice as long for the disk.
func TestTheLogIsFilledBeforeItIsWritten(t *testing.T) {
	path, _, d := begun(t)
	grown, last := 0, int64(0)
	for range 100 {
		d.Append(t, texts(1)...)
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() != last {
			grown, last = grown+1, info.Size()
		}
	}
	if used := int64(300 * logFrame); grown == 0 || grown > int(used/(256<<10))+2 {
		t.Errorf("the log grew at %d of 100 commits", grown)
	}
}

// What a crash leaves is the log as it is now, zeros at its end included.
func TestALogThatEndsInZerosGivesWhatWasAcknowledged(t *testing.T) {
	dir, crashed := t.TempDir(), t.TempDir()
	s := open(t, filepath.Join(dir, "journal.db"))
	d := journaltest.Start(t, s, "a")
	for i := range 50 {
		d.Append(t, texts(1+i%3)...)
	}
	for _, name := range []string{"journal.db", "journal.db-wal"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "journal.db-wal" && !bytes.HasSuffix(content, make([]byte, logFrame)) {
			t.Fatal("the log does not end in zeros")
		}
		if err := os.WriteFile(filepath.Join(crashed, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := open(t, filepath.Join(crashed, "journal.db"))
	intact(t, again, d)
	lease, err := again.Acquire(t.Context(), "a", "heir", d.Lease.Owner, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.Store, d.Lease = again, lease
	d.Append(t, texts(1)...)
	intact(t, again, d)
}

// A transaction larger than SQLite's cache is written to the log, and read from
// there, before it is committed.
func TestATransactionLargerThanTheCacheIsWhole(t *testing.T) {
	_, s, d := begun(t)
	if err := s.Script(`
PRAGMA cache_size = 10;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO blobs (digest, bytes) SELECT 'large ' || i, randomblob(3000) FROM n;
UPDATE blobs SET bytes = bytes || digest;
`); err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{"large 1", "large 1000", "large 2000"} {
		b, err := s.Blob(t.Context(), digest)
		if err != nil || len(b) != 3000+len(digest) {
			t.Errorf("%s: %d bytes, %v", digest, len(b), err)
		}
	}
	d.Append(t, texts(1)...)
	intact(t, s, d)
}

// Two writers on one file fill and write the same log in turn.
func TestTheLogOfTwoWritersKeepsWhatBothWrote(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	here, there := open(t, path), open(t, path)
	a, b := journaltest.Start(t, here, "a"), journaltest.Start(t, there, "b")
	for range 200 {
		a.Append(t, texts(2)...)
		b.Append(t, big())
	}
	intact(t, here, b)
	intact(t, there, a)
}
