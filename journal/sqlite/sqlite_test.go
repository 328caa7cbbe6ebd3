package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

func TestStoreKeepsTheContract(t *testing.T) {
	journaltest.Run(t, func(t *testing.T, now func() time.Time) journal.Store {
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlite.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return s
	})
}

func TestAJournalHasThePathOfAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"", ":memory:", "file:j.db", "file::memory:?cache=shared", "runs/"} {
		for _, readOnly := range []bool{false, true} {
			if s, err := sqlite.Open(t.Context(), path, sqlite.Options{ReadOnly: readOnly}); err == nil {
				t.Errorf("%q is opened: %v", path, s.Close())
			}
		}
		if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
			t.Errorf("%q leaves %v, %v", path, left, err)
		}
	}
	for _, path := range []string{"./:memory:", "./file:j.db?mode=memory", "a?mode=memory#b%20c"} {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Errorf("%q: %v", path, err)
			continue
		}
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q is not in its file: %v", path, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
