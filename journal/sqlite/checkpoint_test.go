package sqlite_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// The copy is repeated while the log is long and grows; a log that stays as it
// is must not be copied for ever.
func TestALongLogThatRestsDoesNotKeepTheJournalOpen(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := journaltest.Start(t, s, "a")
	lot := slices.Repeat([]event.Data{message(5500)}, 200)
	for range 10 { // some 3400 pages, and 2000 events
		d.Append(t, lot...)
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("close waits for a copy that never ends")
	}
}
