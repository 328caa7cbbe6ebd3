package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/pawlrun/pawl/journal"
	moderncsqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// classify wraps an error of the driver or the file system with the journal's
// own, where it has one.
func classify(err error) error {
	if err == nil {
		return nil
	}
	if kind := kindOf(err); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

func kindOf(err error) error {
	if e, ok := errors.AsType[*moderncsqlite.Error](err); ok {
		return kindOfCode(e.Code())
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return journal.ErrFull
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return journal.ErrReadOnly
	}
	return nil
}

func kindOfCode(code int) error {
	switch code {
	case sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE:
		// SQLite calls only ENOSPC a full disk; a quota or a limit on the
		// size of files reads as a write error, and a full disk under the
		// shared memory as one of its size.
		return journal.ErrFull
	case sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS:
		return journal.ErrCorrupt
	}
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return journal.ErrLocked
	case sqlite3.SQLITE_READONLY:
		return journal.ErrReadOnly
	case sqlite3.SQLITE_FULL:
		return journal.ErrFull
	case sqlite3.SQLITE_CORRUPT:
		return journal.ErrCorrupt
	case sqlite3.SQLITE_NOTADB:
		return journal.ErrForeign
	}
	return nil
}

// needsRecovery says that a reader met what a killed writer left behind.
func needsRecovery(err error) bool {
	e, ok := errors.AsType[*moderncsqlite.Error](err)
	return ok && (e.Code() == sqlite3.SQLITE_READONLY_ROLLBACK || e.Code() == sqlite3.SQLITE_READONLY_RECOVERY)
}
