package sqlite_test

import (
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
