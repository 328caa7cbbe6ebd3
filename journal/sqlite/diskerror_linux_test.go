package sqlite_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

func TestAFullDiskAndOneThatFailsAreToldApart(t *testing.T) {
	for failure, want := range map[syscall.Errno]error{
		syscall.ENOSPC: journal.ErrFull, syscall.EDQUOT: journal.ErrFull, syscall.EFBIG: journal.ErrFull,
		syscall.EIO: journal.ErrIO,
	} {
		t.Run(failure.Error(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			var failing error
			tap := sqlite.Tap{Dir: filepath.Dir(path), Write: func(string, []byte, int64) error { return failing }}
			defer tap.Install()()
			s := open(t, path)
			d := journaltest.Start(t, s, "a")
			failing = failure
			err := d.Write(t, d.Batch(t, texts(1)...))
			failing = nil
			for _, kind := range []error{journal.ErrFull, journal.ErrIO, journal.ErrReadOnly, journal.ErrLocked} {
				if errors.Is(err, kind) != (kind == want) {
					t.Errorf("%v: is %v: %t", err, kind, kind != want)
				}
			}
			intact(t, s, d)
		})
	}
}

// The system forgets what it could not write, and the next sync succeeds.
func TestFailedSyncBlocksAcknowledgementsUntilReopen(t *testing.T) {
	for _, failure := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
		t.Run(failure.Error(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			var failing error
			tap := sqlite.Tap{Dir: filepath.Dir(path), Sync: func(string) error { return failing }}
			defer tap.Install()()
			s := open(t, path)
			d := journaltest.Start(t, s, "a")
			d.Append(t, texts(2)...)
			failing = failure
			lost := d.Batch(t, texts(1)...)
			if err := d.Write(t, lost); !errors.Is(err, journal.ErrIO) {
				t.Errorf("the append: %v, want ErrIO", err)
			}
			failing = nil
			if err := d.Write(t, d.Batch(t, texts(1)...)); !errors.Is(err, journal.ErrIO) {
				t.Errorf("the next append: %v, want ErrIO", err)
			}
			if _, err := s.Send(t.Context(), journal.Command{Run: "a"}); !errors.Is(err, journal.ErrIO) {
				t.Errorf("a command: %v, want ErrIO", err)
			}
			if err := s.Release(t.Context(), journal.Lease{}); !errors.Is(err, journal.ErrIO) {
				t.Errorf("a commit that changes nothing: %v, want ErrIO", err)
			}
			intact(t, s, d)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again := open(t, path)
			row, err := again.Run(t.Context(), "a")
			if err != nil || row.Head != d.Head && row.Head != lost.Head {
				t.Fatalf("%+v, %v", row, err)
			}
			d.Store, d.Seq, d.Head = again, row.Seq, row.Head
			d.Append(t, texts(1)...)
			intact(t, again, d)
		})
	}
}
