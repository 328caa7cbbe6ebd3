package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// On one processor no other goroutine runs while a copy does not yield.
func TestACopyOfTheLogLetsOthersGoFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	var copied atomic.Int64
	tap := &sqlite.Tap{
		Dir: filepath.Dir(path),
		Write: func(file string, _ []byte, _ int64) error {
			if !strings.HasSuffix(file, "-wal") {
				copied.Add(1)
			}
			return nil
		},
		Truncate: func(string, int64) {},
		Sync:     func(string) error { return nil },
		SyncDir:  func(string) error { return nil },
	}
	defer tap.Install()()
	s := open(t, path)
	d := journaltest.Start(t, s, "a")
	for range 100 {
		d.Append(t, message(4000))
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	before := make(chan int64, 1)
	copied.Store(0)
	go func() { before <- copied.Load() }()
	if err := s.Checkpoint("TRUNCATE"); err != nil {
		t.Fatal(err)
	}
	if got := <-before; got > copied.Load()/4 {
		t.Errorf("another goroutine waited for %d of %d pages", got, copied.Load())
	}
	intact(t, s, d)
}

// Every commit that a copy finds in the log is on disk: syncing the log again would
// only slow concurrent commits.
func TestACopyOfTheLogDoesNotSyncItAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	var syncs atomic.Int64
	tap := &sqlite.Tap{Dir: filepath.Dir(path), Sync: func(file string) error {
		if strings.HasSuffix(file, "-wal") {
			syncs.Add(1)
		}
		return nil
	}}
	defer tap.Install()()
	d := journaltest.Start(t, open(t, path), "a")
	before := syncs.Load()
	d.Append(t, texts(1)...)
	if syncs.Load() == before {
		t.Fatal("a commit did not sync the log")
	}
	before = syncs.Load()
	if err := d.Store.(*sqlite.Store).Checkpoint("FULL"); err != nil {
		t.Fatal(err)
	}
	if got := syncs.Load() - before; got != 0 {
		t.Errorf("a copy synced the log %d times", got)
	}
}

// A writer may be killed between writing a commit and syncing it, and a program
// that is not ours may be the first to look at what it left. To that and to all
// who come while it looks the commit counts, but it is not on disk yet.
func TestWhatAnotherProgramRecoveredIsSyncedBeforeItIsCopied(t *testing.T) {
	left, path := filepath.Join(t.TempDir(), "journal.db"), filepath.Join(t.TempDir(), "journal.db")
	d := journaltest.Start(t, open(t, left), "a")
	d.Append(t, texts(1)...)
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(left + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var runs int
	if err := other.QueryRowContext(t.Context(), "SELECT count(*) FROM runs").Scan(&runs); err != nil || runs == 0 {
		t.Fatalf("the other program sees %d runs: %v", runs, err)
	}

	synced, copied := false, false
	tap := &sqlite.Tap{
		Dir: filepath.Dir(path),
		Sync: func(file string) error {
			synced = synced || strings.HasSuffix(file, "-wal")
			return nil
		},
		Write: func(file string, _ []byte, _ int64) error {
			if !strings.HasSuffix(file, "-wal") {
				copied = true
				if !synced {
					t.Error("pages are copied from a log that was not synced")
				}
			}
			return nil
		},
	}
	defer tap.Install()()
	if err := open(t, path).Checkpoint("PASSIVE"); err != nil {
		t.Fatal(err)
	}
	if !copied {
		t.Error("nothing was copied")
	}
}
