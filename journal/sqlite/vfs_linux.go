package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// vfsName is the file system of the writing connection, and of connections that may
// recover a crashed journal (sqlite.org/vfs.html). It is SQLite's own, except that
// writes and syncs of the write-ahead log go through a [logFile].
const vfsName = "pawl"

// files is per process, like SQLite's list of file systems.
var files struct {
	// base is SQLite's own file system, fcntl its system call for locks.
	base, fcntl   uintptr
	bound         boundLocks
	log, database methods

	mu sync.RWMutex
	// logs holds each open log, under its own and its database's file.
	logs map[uintptr]*logFile
	// opened is called for each opened file, for tests; a database has no log.
	opened func(path string, file uintptr, log *logFile)
}

// methods are the functions of a kind of file: SQLite's originals, and the address of a
// table with ours, 0 before the first file.
type methods struct {
	own  sqlite3.Tsqlite3_io_methods
	ours uintptr
}

// take installs our functions in a file that SQLite has opened.
func (m *methods) take(tls *libc.TLS, f *sqlite3.TunixFile, replace func(*sqlite3.Tsqlite3_io_methods)) {
	if m.ours == 0 {
		m.own = *at[sqlite3.Tsqlite3_io_methods](f.FpMethod)
		changed := m.own
		replace(&changed)
		m.ours = keep(tls, changed)
	}
	f.FpMethod = m.ours
}

// registerVFS registers vfsName with SQLite.
var registerVFS = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	files.base = sqlite3.Xsqlite3_vfs_find(tls, 0)
	if files.base == 0 {
		return errors.New("sqlite: there is no file system")
	}
	files.bound.bytes = map[int32]uint64{}
	if err := bindLocks(tls); err != nil {
		return err
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

// keep copies a value into SQLite's memory for the life of the process.
func keep[T any](tls *libc.TLS, value T) uintptr {
	p := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(value)))
	*at[T](p) = value
	return p
}

// address returns SQLite's pointer to a function; function is the inverse.
func address[F any](f F) uintptr  { return *(*uintptr)(unsafe.Pointer(&f)) }
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

// The types of the functions of a file system and of its files.
type (
	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	readFunc     = func(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32
	writeFunc    = func(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32
	controlFunc  = func(tls *libc.TLS, file uintptr, op int32, arg uintptr) int32
	lockFunc     = func(tls *libc.TLS, file uintptr, offset, n, flags int32) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
	mapFunc      = func(tls *libc.TLS, file uintptr, region, size, extend int32, out uintptr) int32
	sizeFunc     = func(tls *libc.TLS, file, size uintptr) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
)

func openFile(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	open := function[openFunc](at[sqlite3.Tsqlite3_vfs](files.base).FxOpen)
	rc := open(tls, files.base, name, file, flags, out)
	switch {
	case rc != sqlite3.SQLITE_OK:
	case flags&sqlite3.SQLITE_OPEN_MAIN_DB != 0:
		takeDatabase(tls, name, file)
	case flags&sqlite3.SQLITE_OPEN_WAL != 0:
		takeLog(tls, name, file)
	}
	return rc
}

func takeDatabase(tls *libc.TLS, name, file uintptr) {
	files.mu.Lock()
	defer files.mu.Unlock()
	files.database.take(tls, at[sqlite3.TunixFile](file), func(m *sqlite3.Tsqlite3_io_methods) {
		m.FxShmLock, m.FxWrite = address(lockDatabase), address(writeDatabase)
		m.FxFileControl, m.FxSync = address(controlDatabase), address(syncDatabase)
	})
	if files.opened != nil {
		files.opened(libc.GoString(name), file, nil)
	}
}

func takeLog(tls *libc.TLS, name, file uintptr) {
	files.mu.Lock()
	defer files.mu.Unlock()
	f, path := at[sqlite3.TunixFile](file), libc.GoString(name)
	files.log.take(tls, f, func(m *sqlite3.Tsqlite3_io_methods) {
		m.FxRead, m.FxWrite, m.FxSync = address(readLog), address(writeLog), address(syncLog)
		m.FxFileSize, m.FxTruncate, m.FxClose = address(sizeOfLog), address(truncateLog), address(closeLog)
	})
	log := &logFile{
		disk: systemDisk(), fd: int(f.Fh), dir: filepath.Dir(path), unsynced: true,
		database: sqlite3.Xsqlite3_database_file_object(tls, name),
	}
	files.logs[file], files.logs[log.database] = log, log
	if files.opened != nil {
		files.opened(path, file, log)
	}
}

func logAt(file uintptr) *logFile {
	files.mu.RLock()
	defer files.mu.RUnlock()
	return files.logs[file]
}

// codeOf returns SQLite's code for an error of a log; failed is the general code of the
// operation.
func codeOf(err error, failed int32) int32 {
	switch {
	case err == nil:
		return sqlite3.SQLITE_OK
	case noSpace(err):
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

// lockDatabase detects when the log's write lock is released, after a commit or any
// failure, and when the lock for reading an abandoned log is released.
func lockDatabase(tls *libc.TLS, file uintptr, offset, n, flags int32) int32 {
	const release = sqlite3.SQLITE_SHM_UNLOCK | sqlite3.SQLITE_SHM_EXCLUSIVE
	if log := logAt(file); log != nil && flags == release {
		switch {
		case offset == sqlite3.WAL_WRITE_LOCK:
			log.pending = log.pending[:0]
		case offset <= sqlite3.WAL_RECOVER_LOCK && sqlite3.WAL_RECOVER_LOCK < offset+n:
			log.rewrite()
		}
	}
	return function[lockFunc](files.database.own.FxShmLock)(tls, file, offset, n, flags)
}

// yieldPages is the number of pages after which a copy of the log yields.
const yieldPages = 16

// writeDatabase writes the pages of a copy of the log, in the order of the file. There
// may be thousands, and without yielding they would delay the goroutines that a commit
// woke.
func writeDatabase(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32 {
	if offset/pageSize%yieldPages == 0 {
		runtime.Gosched()
	}
	return function[writeFunc](files.database.own.FxWrite)(tls, file, buf, n, offset)
}

// controlDatabase starts writing a finished copy of the log to disk. SQLite syncs the
// database only when the whole log is copied, while a commit waits: without this, the
// commit would wait for all earlier copies. It only shortens that wait and promises
// nothing: an error occurs again when SQLite syncs.
func controlDatabase(tls *libc.TLS, file uintptr, op int32, arg uintptr) int32 {
	if op == sqlite3.SQLITE_FCNTL_CKPT_DONE {
		_ = unix.SyncFileRange(int(at[sqlite3.TunixFile](file).Fh), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
	}
	return function[controlFunc](files.database.own.FxFileControl)(tls, file, op, arg)
}

// syncDatabase handles a failed sync of copied data. SQLite still considers earlier
// copies as done, although they are not synced: the system may have discarded that data
// too, and the next copy would let the log go.
func syncDatabase(tls *libc.TLS, file uintptr, flags int32) int32 {
	rc := function[syncFunc](files.database.own.FxSync)(tls, file, flags)
	if rc != sqlite3.SQLITE_OK {
		forgetCopies(tls, file)
	}
	return rc
}

// The offsets in the shared memory of how much of the log is copied, and of the length
// of its first part (sqlite.org/walformat.html, "The WAL-Index File Format").
const (
	copiedAt  = 96
	shmRegion = 32 << 10
)

// forgetCopies makes the next copy begin at the start of the log. The caller holds the
// copy lock, and the lock that prevents others from reading past the log.
func forgetCopies(tls *libc.TLS, file uintptr) {
	if at[sqlite3.TunixFile](file).FpShm == 0 {
		return // not in WAL mode yet
	}
	memory := tls.Alloc(int(unsafe.Sizeof(file)))
	defer tls.Free(int(unsafe.Sizeof(file)))
	rc := function[mapFunc](files.database.own.FxShmMap)(tls, file, 0, shmRegion, 0, memory)
	if first := *at[uintptr](memory); rc == sqlite3.SQLITE_OK && first != 0 {
		atomic.StoreUint32(at[uint32](first+copiedAt), 0)
	}
}

func syncLog(_ *libc.TLS, file uintptr, _ int32) int32 {
	if rc := flushLog(file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	// If the disk turns out to be full only now, it has lost data as well.
	if logAt(file).sync() != nil {
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	return sqlite3.SQLITE_OK
}

func readLog(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32 {
	if rc := flushLog(file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return function[readFunc](files.log.own.FxRead)(tls, file, buf, n, offset)
}

func sizeOfLog(tls *libc.TLS, file, size uintptr) int32 {
	if rc := flushLog(file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return function[sizeFunc](files.log.own.FxFileSize)(tls, file, size)
}

// truncateLog erases a log instead of truncating it, because the truncated data could
// still be read from the disk.
func truncateLog(tls *libc.TLS, file uintptr, size int64) int32 {
	if rc := flushLog(file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	log := logAt(file)
	var stat unix.Stat_t
	if size == 0 && unix.Fstat(int(at[sqlite3.TunixFile](file).Fh), &stat) == nil {
		return codeOf(log.erase(stat.Size), sqlite3.SQLITE_IOERR_TRUNCATE)
	}
	log.filled = 0 // the next write checks the length
	return function[truncateFunc](files.log.own.FxTruncate)(tls, file, size)
}

func closeLog(tls *libc.TLS, file uintptr) int32 {
	files.mu.Lock()
	delete(files.logs, files.logs[file].database)
	delete(files.logs, file)
	files.mu.Unlock()
	return function[closeFunc](files.log.own.FxClose)(tls, file)
}
