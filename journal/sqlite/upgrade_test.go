package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// TestAJournalFromBeforeForksIsReadAndUpgraded takes out of a file what its
// first version did not have.
func TestAJournalFromBeforeForksIsReadAndUpgraded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	open := func(readOnly bool) *sqlite.Store {
		t.Helper()
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{ReadOnly: readOnly, Now: journaltest.Epoch})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := open(false)
	journaltest.Start(t, s, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{
		"DROP INDEX runs_fork", "ALTER TABLE runs DROP COLUMN fork_of", "ALTER TABLE runs DROP COLUMN fork_seq", "PRAGMA user_version = 1",
	} {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	old := open(true)
	if v, err := journal.Verify(t.Context(), old, "a", ""); err != nil || v.Events != 1 {
		t.Errorf("read only: %+v, %v", v, err)
	}
	if forks, err := old.Runs(t.Context(), journal.Filter{ForkOf: "a"}); err != nil || len(forks) != 0 {
		t.Errorf("its forks: %v, %v", forks, err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(false)
	journaltest.Fork(t, s, "f", "a", 1)
	if v, err := journal.Verify(t.Context(), s, "f", ""); err != nil || v.Events != 2 {
		t.Errorf("upgraded: %+v, %v", v, err)
	}
}
