package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	moderncsqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawlrun/pawl/journal"
)

// classify wraps an error of the driver or the file system with the journal's own
// error, if there is one.
func classify(err error) error {
	if err == nil {
		return nil
	}
	if kind := kindOf(err); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// cause is [classify] for a reader's error. If the file was moved away, the first error
// is arbitrary, so it returns that the file was moved.
func (s *Store) cause(err error) error {
	if s.writer == nil {
		return classify(err)
	}
	return s.writer.file.cause(err)
}

// cause returns [journal.ErrReplaced] if SQLite or the disk failed and the path now
// leads elsewhere, otherwise the result of [classify]. Lock errors say nothing about
// the file.
func (f *file) cause(err error) error {
	failed := sqliteCode(err) != sqlite3.SQLITE_OK || kindOf(err) != nil
	if err = classify(err); !failed || errors.Is(err, journal.ErrLocked) {
		return err
	}
	if moved := f.check(); moved != nil {
		return fmt.Errorf("%w (%v)", moved, err)
	}
	return err
}

func kindOf(err error) error {
	if code := sqliteCode(err); code != sqlite3.SQLITE_OK {
		return kindOfCode(code)
	}
	switch {
	case noSpace(err):
		return journal.ErrFull
	case errors.Is(err, syscall.EIO):
		return journal.ErrIO
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return journal.ErrReadOnly
	}
	return nil
}

// sqliteCode returns SQLite's code in an error of either interface.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqliteError](err); ok {
		return int(e.code)
	}
	if e, ok := errors.AsType[*moderncsqlite.Error](err); ok {
		return e.Code()
	}
	return sqlite3.SQLITE_OK
}

// noSpace reports whether a write found no space: on the disk, in a quota, or under a
// limit on the size of files.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

func kindOfCode(code int) error {
	switch code {
	case sqlite3.SQLITE_IOERR_SHMSIZE:
		// A full disk under the shared memory is reported as an error of its size.
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
	case sqlite3.SQLITE_IOERR:
		return journal.ErrIO
	case sqlite3.SQLITE_CORRUPT:
		return journal.ErrCorrupt
	case sqlite3.SQLITE_NOTADB:
		return journal.ErrForeign
	}
	return nil
}

// needsRecovery reports whether a reader found an interrupted write of a killed
// process.
func needsRecovery(err error) bool {
	code := sqliteCode(err)
	return code == sqlite3.SQLITE_READONLY_ROLLBACK || code == sqlite3.SQLITE_READONLY_RECOVERY
}

// syncFailed reports whether a sync failed.
func syncFailed(err error) bool {
	code := sqliteCode(err)
	return code == sqlite3.SQLITE_IOERR_FSYNC || code == sqlite3.SQLITE_IOERR_DIR_FSYNC
}
