package sqlite

import (
	"errors"
	"fmt"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// database is an open file, accessed through SQLite's C interface (sqlite.org/c3ref).
// database/sql, which readers use, boxes each value, copies it twice and looks up its
// name, which would take a third of the time of an append. It must be used by one
// goroutine at a time.
type database struct {
	tls    *libc.TLS
	handle uintptr
}

// sqliteError is the error of a call of SQLite.
type sqliteError struct {
	code    int32
	message string
}

func (e *sqliteError) Error() string { return fmt.Sprintf("%s (%d)", e.message, e.code) }

// openDatabase opens a URI (sqlite.org/uri.html).
func openDatabase(uri string) (*database, error) {
	d := &database{tls: libc.NewTLS()}
	if err := d.open(uri); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *database) open(uri string) error {
	name, err := libc.CString(uri)
	if err != nil {
		return fmt.Errorf("sqlite: name a file: %w", err)
	}
	defer libc.Xfree(d.tls, name)
	opened := d.tls.Alloc(int(unsafe.Sizeof(d.handle)))
	defer d.tls.Free(int(unsafe.Sizeof(d.handle)))
	const flags = sqlite3.SQLITE_OPEN_READWRITE | sqlite3.SQLITE_OPEN_CREATE | sqlite3.SQLITE_OPEN_URI | sqlite3.SQLITE_OPEN_NOMUTEX
	rc := sqlite3.Xsqlite3_open_v2(d.tls, name, opened, flags, 0)
	d.handle = *at[uintptr](opened)
	if rc != sqlite3.SQLITE_OK {
		return d.failure(rc)
	}
	return d.check(sqlite3.Xsqlite3_extended_result_codes(d.tls, d.handle, 1))
}

// close closes the connection. Its statements must be finalized before.
func (d *database) close() error {
	err := d.check(sqlite3.Xsqlite3_close_v2(d.tls, d.handle))
	d.tls.Close()
	return err
}

// script runs statements that need not stay prepared.
func (d *database) script(text string) error {
	source, err := libc.CString(text)
	if err != nil {
		return fmt.Errorf("sqlite: run a script: %w", err)
	}
	defer libc.Xfree(d.tls, source)
	return d.check(sqlite3.Xsqlite3_exec(d.tls, d.handle, source, 0, 0, 0))
}

// prepare compiles one statement, which the caller closes.
func (d *database) prepare(text string) (*statement, error) {
	source, err := libc.CString(text)
	if err != nil {
		return nil, fmt.Errorf("sqlite: prepare a statement: %w", err)
	}
	defer libc.Xfree(d.tls, source)
	s := &statement{db: d}
	prepared := d.tls.Alloc(int(unsafe.Sizeof(s.handle)))
	defer d.tls.Free(int(unsafe.Sizeof(s.handle)))
	rc := sqlite3.Xsqlite3_prepare_v3(d.tls, d.handle, source, -1, sqlite3.SQLITE_PREPARE_PERSISTENT, prepared, 0)
	s.handle = *at[uintptr](prepared)
	return s, d.check(rc)
}

// changes returns the number of rows changed since the file was opened.
func (d *database) changes() int64 { return sqlite3.Xsqlite3_total_changes64(d.tls, d.handle) }

// lastRow returns the id of the last inserted row.
func (d *database) lastRow() int64 { return sqlite3.Xsqlite3_last_insert_rowid(d.tls, d.handle) }

// idle reports whether no transaction is open.
func (d *database) idle() bool { return sqlite3.Xsqlite3_get_autocommit(d.tls, d.handle) != 0 }

func (d *database) check(rc int32) error {
	if rc == sqlite3.SQLITE_OK {
		return nil
	}
	return d.failure(rc)
}

// failure returns the error of a code, with SQLite's message if that says more.
func (d *database) failure(rc int32) error {
	message := libc.GoString(sqlite3.Xsqlite3_errstr(d.tls, rc))
	if d.handle != 0 {
		if detail := libc.GoString(sqlite3.Xsqlite3_errmsg(d.tls, d.handle)); detail != message {
			message += ": " + detail
		}
	}
	return &sqliteError{code: rc, message: message}
}

// at returns a pointer to a value in SQLite's memory.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }
