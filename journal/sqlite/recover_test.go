package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// A process that is killed while it makes a file a journal, or changes its
// mode, leaves a rollback log. A reader must not be stopped by it.
func TestAReaderRecoversWhatAKilledWriterLeft(t *testing.T) {
	dir := t.TempDir()
	path, left := filepath.Join(dir, "a.db"), filepath.Join(dir, "left.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	interruptedWrite(t, path, left)
	reader, err := sqlite.Open(t.Context(), left, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if runs, err := reader.Runs(t.Context(), journal.Filter{}); err != nil || len(runs) != 0 {
		t.Errorf("%d runs: %v", len(runs), err)
	}
}

// interruptedWrite copies the file at path in the middle of a transaction that
// has already changed it, with its rollback log.
func interruptedWrite(t *testing.T, path, left string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range []string{
		"PRAGMA journal_mode = DELETE", "PRAGMA cache_size = 1", "PRAGMA synchronous = FULL", "BEGIN IMMEDIATE",
		"CREATE TABLE unfinished (b BLOB)",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO unfinished SELECT randomblob(4000) FROM n",
	} {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	for _, suffix := range []string{"", "-journal"} {
		data, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(left+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}
