package sqlite_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// spillAndFail writes more than SQLite's cache holds, so that part of it goes to
// the log before the transaction fails.
const spillAndFail = `
PRAGMA cache_size = 10;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
INSERT INTO blobs (digest, bytes) SELECT 'lost ' || i, randomblob(3000) FROM n;
INSERT INTO nowhere VALUES (1);
`

// What a failed transaction left pending belongs where the next commit of
// whichever process goes.
func TestAFailedTransactionWritesNothingOverWhatOthersCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	here, there := open(t, path), open(t, path)
	a, b := journaltest.Start(t, here, "a"), journaltest.Start(t, there, "b")
	for range 3 {
		checkpoint(t, path)
		if err := here.Script(spillAndFail); err == nil {
			t.Fatal("the transaction did not fail")
		}
		b.Append(t, big())
		a.Append(t, texts(1)...)
		b.Append(t, texts(1)...)
	}
	intact(t, there, a)
	intact(t, here, b)
	crashed := crash(t, path)
	intact(t, crashed, a)
	intact(t, crashed, b)
	if _, err := here.Blob(t.Context(), "lost 1"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("what was rolled back is there: %v", err)
	}
}

// checkpoint copies the whole log, so that SQLite reads nothing from it.
func checkpoint(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var busy, pages, copied int
	if err := db.QueryRow(`PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &copied); err != nil || busy != 0 {
		t.Fatalf("the log was not copied: %v", err)
	}
}

// crash opens what a process that is killed now leaves.
func crash(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	left := filepath.Join(t.TempDir(), "journal.db")
	copyFile(t, path, left)
	copyFile(t, path+"-wal", left+"-wal")
	return open(t, left)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// One that fails when half of it is written takes back its half, and no more.
func TestABatchThatFailsHalfwayHarmsNobodyElseInItsCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path)
	bad, good := journaltest.Start(t, s, "bad"), journaltest.Start(t, s, "good")
	tamper(t, path, `CREATE TRIGGER refuse BEFORE INSERT ON commits WHEN new.seq = 3 BEGIN SELECT RAISE(ABORT, 'refused'); END`)
	b := good.Batch(t, texts(1)...)
	errs := s.AppendTogether(bad.Batch(t, texts(2)...), b)
	if errs[0] == nil || errs[1] != nil {
		t.Fatalf("the one that is refused: %v, the one beside it: %v", errs[0], errs[1])
	}
	good.Seq, good.Head = good.Seq+1, b.Head
	intact(t, s, bad)
	intact(t, s, good)
}

// The number that a run would have had is the next one's.
func TestARunThatCouldNotBeCreatedTakesNothing(t *testing.T) {
	path, s, d := begun(t)
	tamper(t, path, `CREATE TRIGGER refuse BEFORE INSERT ON commits BEGIN SELECT RAISE(ABORT, 'refused'); END`)
	never := *d
	never.Lease.Run, never.Seq, never.Head = "never", 0, ""
	if _, _, err := s.Create(t.Context(), journal.Run{ID: "never", Kind: "Agent"}, never.Batch(t, texts(1)...)); err == nil {
		t.Fatal("it is created")
	}
	tamper(t, path, `DROP TRIGGER refuse`)
	next := journaltest.Start(t, s, "next")
	never.Seq, never.Head = next.Seq, next.Head
	if err := never.Write(t, never.Batch(t, texts(1)...)); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	intact(t, s, next)
}
