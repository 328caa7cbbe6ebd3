package sqlite

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// vfsName is the file system of the writing connection (sqlite.org/vfs.html):
// SQLite's own, but for the write-ahead log, whose writes and syncs go through
// a [logFile].
const vfsName = "pawl"

// files belongs to the process, as SQLite's list of file systems does.
var files struct {
	// base is SQLite's own file system, methods what it does with a log.
	base    uintptr
	methods sqlite3.Tsqlite3_io_methods
	// logMethods is methods with ours among them, in SQLite's memory; 0 before
	// the first log.
	logMethods uintptr

	mu   sync.RWMutex
	logs map[uintptr]*logFile
}

// registerVFS makes vfsName known to SQLite.
var registerVFS = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	files.base = sqlite3.Xsqlite3_vfs_find(tls, 0)
	if files.base == 0 {
		return errors.New("sqlite: there is no file system")
	}
	name, err := libc.CString(vfsName)
	if err != nil {
		return fmt.Errorf("sqlite: name a file system: %w", err)
	}
	files.logs = map[uintptr]*logFile{}
	system := *at[sqlite3.Tsqlite3_vfs](files.base)
	system.FzName, system.FpNext, system.FxOpen = name, 0, address(openFile)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, keep(tls, system), 0); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("sqlite: register a file system: code %d", rc)
	}
	return nil
})

// keep copies a value into SQLite's memory, for as long as the process lives.
func keep[T any](tls *libc.TLS, value T) uintptr {
	p := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(value)))
	*at[T](p) = value
	return p
}

// at is what SQLite's memory holds at an address.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// address is what SQLite calls a function by; function is the way back.
func address[F any](f F) uintptr  { return *(*uintptr)(unsafe.Pointer(&f)) }
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

// The functions of a file system and of its files, as SQLite calls them.
type (
	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	readFunc     = func(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
	sizeFunc     = func(tls *libc.TLS, file, size uintptr) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
)

func openFile(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	open := function[openFunc](at[sqlite3.Tsqlite3_vfs](files.base).FxOpen)
	rc := open(tls, files.base, name, file, flags, out)
	if rc == sqlite3.SQLITE_OK && flags&sqlite3.SQLITE_OPEN_WAL != 0 {
		takeLog(tls, file)
	}
	return rc
}

// takeLog puts our functions between SQLite and a log that it has opened.
func takeLog(tls *libc.TLS, file uintptr) {
	files.mu.Lock()
	defer files.mu.Unlock()
	f := at[sqlite3.TunixFile](file)
	if files.logMethods == 0 {
		files.methods = *at[sqlite3.Tsqlite3_io_methods](f.FpMethod)
		m := files.methods
		m.FxRead, m.FxWrite, m.FxSync = address(readLog), address(writeLog), address(syncLog)
		m.FxFileSize, m.FxTruncate, m.FxClose = address(sizeOfLog), address(truncateLog), address(closeLog)
		files.logMethods = keep(tls, m)
	}
	f.FpMethod = files.logMethods
	files.logs[file] = &logFile{fd: int(f.Fh)}
}

func logAt(file uintptr) *logFile {
	files.mu.RLock()
	defer files.mu.RUnlock()
	return files.logs[file]
}

// codeOf is SQLite's number for an error of a log; failed is the one that says
// what could not be done.
func codeOf(err error, failed int32) int32 {
	switch {
	case err == nil:
		return sqlite3.SQLITE_OK
	case errors.Is(err, syscall.ENOSPC):
		return sqlite3.SQLITE_FULL
	}
	return failed
}

func writeLog(_ *libc.TLS, file, buf uintptr, n int32, offset int64) int32 {
	return codeOf(logAt(file).write(unsafe.Slice(at[byte](buf), n), offset), sqlite3.SQLITE_IOERR_WRITE)
}

func flushLog(file uintptr) int32 {
	return codeOf(logAt(file).flush(), sqlite3.SQLITE_IOERR_WRITE)
}

// syncLog leaves the first sync of a new log to SQLite, because the directory
// that names it is then synced as well.
func syncLog(tls *libc.TLS, file uintptr, flags int32) int32 {
	if rc := flushLog(file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	if at[sqlite3.TunixFile](file).FctrlFlags&sqlite3.UNIXFILE_DIRSYNC != 0 {
		return function[syncFunc](files.methods.FxSync)(tls, file, flags)
	}
	return codeOf(logAt(file).sync(), sqlite3.SQLITE_IOERR_FSYNC)
}

func readLog(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32 {
	if rc := flushLog(file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return function[readFunc](files.methods.FxRead)(tls, file, buf, n, offset)
}

func sizeOfLog(tls *libc.TLS, file, size uintptr) int32 {
	if rc := flushLog(file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return function[sizeFunc](files.methods.FxFileSize)(tls, file, size)
}

func truncateLog(tls *libc.TLS, file uintptr, size int64) int32 {
	if rc := flushLog(file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	logAt(file).filled = 0 // which makes the next write look
	return function[truncateFunc](files.methods.FxTruncate)(tls, file, size)
}

func closeLog(tls *libc.TLS, file uintptr) int32 {
	flushed := flushLog(file)
	files.mu.Lock()
	delete(files.logs, file)
	files.mu.Unlock()
	if rc := function[closeFunc](files.methods.FxClose)(tls, file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return flushed
}
