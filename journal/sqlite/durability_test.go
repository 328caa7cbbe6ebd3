package sqlite_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/journaltest"
)

func TestACommitIsSyncedBeforeItIsAcknowledged(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "journal.db"))
	for name, want := range map[string]any{
		"journal_mode":       "wal",
		"synchronous":        int64(2), // FULL: the log is synced at every commit
		"wal_autocheckpoint": int64(4000),
		"busy_timeout":       int64(5000),
		"locking_mode":       "normal",
	} {
		if got, err := s.Pragma(name); err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, err, want)
		}
	}
}

func TestOnlyItsOwnerReadsAJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "deep")
	path := filepath.Join(dir, "journal.db")
	journaltest.Start(t, open(t, path), "a")
	for name, want := range map[string]os.FileMode{
		path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600, dir: 0o700 | os.ModeDir, filepath.Dir(dir): 0o700 | os.ModeDir,
	} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v (%v), want %v", name, info.Mode(), err, want)
		}
	}
}

func TestTheLogDoesNotGrowWithoutBound(t *testing.T) {
	path, _, d := begun(t)
	const pages = 4000
	lot := slices.Repeat([]event.Data{big()}, 40) // of five pages each
	for range 3 * pages / 200 {
		d.Append(t, lot...)
	}
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if limit := int64(pages+500) * 4120; info.Size() > limit {
		t.Errorf("the log has %d bytes, more than %d", info.Size(), limit)
	}
	if info, err = os.Stat(path); err != nil || info.Size() < 2*pages*4096 {
		t.Errorf("the database has %d bytes (%v): the log was not copied", info.Size(), err)
	}
}

// A commit that copied the whole log would make all others wait.
func TestTheLogIsCopiedBeforeACommitHasToDoIt(t *testing.T) {
	path, _, d := begun(t)
	size := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	const pages = 3000 // a commit copies 4000
	empty := size(path)
	for size(path) == empty {
		d.Append(t, texts(100)...)
		if size(path+"-wal") > pages*4120 {
			t.Fatalf("nothing was copied of %d events", d.Seq)
		}
	}
}
