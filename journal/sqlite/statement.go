package sqlite

import (
	"fmt"
	"math"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawlrun/pawl/journal"
)

// statement is a compiled statement. Its parameters are bound in order, then it runs,
// and then it is reset.
type statement struct {
	db     *database
	handle uintptr
	// bound counts the parameters with a value; rc is the error if one has none.
	bound, rc int32
	// room is SQLite memory for bound values, because SQLite cannot keep pointers to
	// Go's memory. Values that do not fit have separate memory.
	room  uintptr
	used  int
	large []uintptr
}

// roomSize is enough for half a cycle with short output.
const roomSize = 4 << 10

// next returns the number of the next parameter, unless binding an earlier one failed.
func (s *statement) next() (parameter int32, ok bool) {
	s.bound++
	return s.bound, s.rc == sqlite3.SQLITE_OK
}

func (s *statement) bindInt(v int64) {
	if i, ok := s.next(); ok {
		s.rc = sqlite3.Xsqlite3_bind_int64(s.db.tls, s.handle, i, v)
	}
}

func (s *statement) bindNull() {
	if i, ok := s.next(); ok {
		s.rc = sqlite3.Xsqlite3_bind_null(s.db.tls, s.handle, i)
	}
}

func (s *statement) bindText(v string) {
	if i, ok := s.next(); ok {
		if p := lay(s, v); s.rc == sqlite3.SQLITE_OK {
			s.rc = sqlite3.Xsqlite3_bind_text(s.db.tls, s.handle, i, p, int32(len(v)), sqlite3.SQLITE_STATIC)
		}
	}
}

// bindBlob binds bytes; an empty slice is not NULL.
func (s *statement) bindBlob(v []byte) {
	if i, ok := s.next(); ok {
		if p := lay(s, v); s.rc == sqlite3.SQLITE_OK {
			s.rc = sqlite3.Xsqlite3_bind_blob(s.db.tls, s.handle, i, p, int32(len(v)), sqlite3.SQLITE_STATIC)
		}
	}
}

// bindRecords binds packed records of a known size.
func (s *statement) bindRecords(records []journal.Record, size int) {
	i, ok := s.next()
	if !ok {
		return
	}
	p := s.claim(size)
	if s.rc != sqlite3.SQLITE_OK {
		return
	}
	b := unsafe.Slice(at[byte](p), size)[:0]
	for j := range records {
		b = pack(b, &records[j])
	}
	s.rc = sqlite3.Xsqlite3_bind_blob(s.db.tls, s.handle, i, p, int32(size), sqlite3.SQLITE_STATIC)
}

// lay copies a value to memory where SQLite finds it until the statement is reset.
func lay[T string | []byte](s *statement, v T) (address uintptr) {
	if address = s.claim(len(v)); address != 0 {
		copy(unsafe.Slice(at[byte](address), len(v)), v)
	}
	return address
}

// claim is take for a parameter; it returns 0 if the size cannot be bound.
func (s *statement) claim(size int) (address uintptr) {
	if size > math.MaxInt32 {
		s.rc = sqlite3.SQLITE_TOOBIG
		return 0
	}
	if address = s.take(size); address == 0 {
		s.rc = sqlite3.SQLITE_NOMEM
	}
	return address
}

// take returns memory for a value, 0 if there is none.
func (s *statement) take(size int) (address uintptr) {
	if s.room == 0 {
		s.room = libc.Xmalloc(s.db.tls, roomSize)
	}
	if s.room == 0 || s.used+size > roomSize {
		address = libc.Xmalloc(s.db.tls, types.Size_t(size))
		s.large = append(s.large, address)
		return address
	}
	address = s.room + uintptr(s.used)
	s.used += size
	return address
}

// bind binds values of SQLite's types.
func (s *statement) bind(values []any) error {
	for _, v := range values {
		switch v := v.(type) {
		case int64:
			s.bindInt(v)
		case string:
			s.bindText(v)
		case []byte:
			s.bindBlob(v)
		case nil:
			s.bindNull()
		default:
			return fmt.Errorf("sqlite: a parameter of type %T", v)
		}
	}
	return nil
}

// exec runs the statement to its end and returns how many rows it changed.
func (s *statement) exec() (changed int64, err error) {
	defer s.reset()
	before := s.db.changes()
	for row := true; row; {
		if row, err = s.step(); err != nil {
			return 0, err
		}
	}
	return s.db.changes() - before, nil
}

// step reports whether there is a row, or returns an error.
func (s *statement) step() (row bool, err error) {
	if s.rc != sqlite3.SQLITE_OK {
		return false, s.db.failure(s.rc)
	}
	switch rc := sqlite3.Xsqlite3_step(s.db.tls, s.handle); rc {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	default:
		return false, s.db.failure(rc)
	}
}

// row returns the values of the current row.
func (s *statement) row() []any {
	row := make([]any, sqlite3.Xsqlite3_column_count(s.db.tls, s.handle))
	for i := range row {
		row[i] = s.column(int32(i))
	}
	return row
}

// number returns the first column of the current row.
func (s *statement) number() int64 { return sqlite3.Xsqlite3_column_int64(s.db.tls, s.handle, 0) }

func (s *statement) column(i int32) any {
	tls := s.db.tls
	switch sqlite3.Xsqlite3_column_type(tls, s.handle, i) {
	case sqlite3.SQLITE_INTEGER:
		return sqlite3.Xsqlite3_column_int64(tls, s.handle, i)
	case sqlite3.SQLITE_FLOAT:
		return sqlite3.Xsqlite3_column_double(tls, s.handle, i)
	case sqlite3.SQLITE_TEXT:
		return string(s.bytes(sqlite3.Xsqlite3_column_text(tls, s.handle, i), i))
	case sqlite3.SQLITE_BLOB:
		return s.bytes(sqlite3.Xsqlite3_column_blob(tls, s.handle, i), i)
	}
	return nil
}

// bytes copies the bytes of a column.
func (s *statement) bytes(address uintptr, column int32) []byte {
	b := make([]byte, sqlite3.Xsqlite3_column_bytes(s.db.tls, s.handle, column))
	if address != 0 {
		copy(b, unsafe.Slice(at[byte](address), len(b)))
	}
	return b
}

// reset clears the values, so that a large one does not stay in memory. It ignores the
// statement's error, which step has returned.
func (s *statement) reset() {
	sqlite3.Xsqlite3_reset(s.db.tls, s.handle)
	sqlite3.Xsqlite3_clear_bindings(s.db.tls, s.handle)
	for _, p := range s.large {
		libc.Xfree(s.db.tls, p)
	}
	s.used, s.large = 0, s.large[:0]
	s.bound, s.rc = 0, sqlite3.SQLITE_OK
}

func (s *statement) close() {
	sqlite3.Xsqlite3_finalize(s.db.tls, s.handle)
	libc.Xfree(s.db.tls, s.room)
}
