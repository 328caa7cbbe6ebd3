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
			tap := &sqlite.Tap{
				Dir:      filepath.Dir(path),
				Write:    func(string, []byte, int64) error { return failing },
				Truncate: func(string, int64) {},
				Sync:     func(string) error { return nil },
				SyncDir:  func(string) error { return nil },
			}
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
