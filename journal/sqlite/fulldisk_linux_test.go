package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

func TestAFullDiskLosesNothingAndGoesOnWhenThereIsSpace(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("needs the right to mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	path := filepath.Join(dir, "journal.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := journaltest.Start(t, s, "a")
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fill(t, d); !errors.Is(err, journal.ErrFull) {
		t.Fatalf("got %v, want ErrFull", err)
	}
	intact(t, s, d)
	if _, err := s.Send(t.Context(), journal.Command{Run: "a", Kind: journal.Cancel}); err != nil && !errors.Is(err, journal.ErrFull) {
		t.Errorf("a command: %v, want ErrFull or none", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	d.Append(t, big())
	intact(t, s, d)

	// A process that starts on a full disk reports that.
	fillDisk(t, ballast)
	if _, err := sqlite.Open(t.Context(), filepath.Join(dir, "new", "journal.db"), sqlite.Options{}); !errors.Is(err, journal.ErrFull) {
		t.Errorf("a new journal on a full disk: %v, want ErrFull", err)
	}
	// What the log holds cannot go into the database now; it is kept.
	_ = s.Close()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	intact(t, open(t, path), d)
}

func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 16, 4096, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
}
