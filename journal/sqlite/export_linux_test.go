package sqlite

import (
	"strings"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Tap observes what a journal's writing connections do to its files, before it happens;
// an error prevents the operation, except a sync. path ends in -wal for the log. Nil
// functions are not called.
type Tap struct {
	Dir      string
	Write    func(path string, p []byte, offset int64) error
	Truncate func(path string, size int64)
	Sync     func(path string) error
	SyncDir  func(dir string) error
}

type tapped struct {
	Tap
	path string
	own  sqlite3.Tsqlite3_io_methods
}

var taps = map[uintptr]tapped{}

// Install observes the files that are opened from now on.
func (t *Tap) Install() (remove func()) {
	if err := registerVFS(); err != nil {
		panic(err)
	}
	tls := libc.NewTLS()
	whole := t.whole()
	setOpened(func(path string, file uintptr, log *logFile) {
		if !strings.HasPrefix(path, t.Dir) {
			return
		}
		f := at[sqlite3.TunixFile](file)
		tap := tapped{whole, path, *at[sqlite3.Tsqlite3_io_methods](f.FpMethod)}
		taps[file] = tap
		m := tap.own
		m.FxTruncate = address(tapTruncate)
		if log == nil {
			m.FxWrite, m.FxSync = address(tapWrite), address(tapSync)
		} else {
			tap.tapLog(log)
		}
		f.FpMethod = keep(tls, m)
	})
	return func() { setOpened(nil) }
}

// whole returns the tap with functions in place of nil ones.
func (t *Tap) whole() Tap {
	w := *t
	if w.Write == nil {
		w.Write = func(string, []byte, int64) error { return nil }
	}
	if w.Truncate == nil {
		w.Truncate = func(string, int64) {}
	}
	if w.Sync == nil {
		w.Sync = func(string) error { return nil }
	}
	if w.SyncDir == nil {
		w.SyncDir = func(string) error { return nil }
	}
	return w
}

func setOpened(hook func(string, uintptr, *logFile)) {
	files.mu.Lock()
	defer files.mu.Unlock()
	files.opened = hook
}

func (t tapped) tapLog(log *logFile) {
	own := log.disk
	log.disk = disk{
		pread: own.pread,
		pwrite: func(fd int, p []byte, offset int64) (int, error) {
			if err := t.Write(t.path, p, offset); err != nil {
				return 0, err
			}
			return own.pwrite(fd, p, offset)
		},
		fdatasync: func(int) error { return t.Sync(t.path) },
		syncDir:   func(dir string) error { return t.SyncDir(dir) },
	}
}

func tapWrite(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32 {
	t := taps[file]
	if err := t.Write(t.path, unsafe.Slice(at[byte](buf), n), offset); err != nil {
		return codeOf(err, sqlite3.SQLITE_IOERR_WRITE)
	}
	return function[writeFunc](t.own.FxWrite)(tls, file, buf, n, offset)
}

func tapTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	t := taps[file]
	if size > 0 || !strings.HasSuffix(t.path, "-wal") { // a log is erased instead of truncated
		t.Truncate(t.path, size)
	}
	return function[truncateFunc](t.own.FxTruncate)(tls, file, size)
}

// tapSync makes a sync fail where SQLite calls the system.
func tapSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	t := taps[file]
	if t.Sync(t.path) == nil {
		return sqlite3.SQLITE_OK
	}
	f := at[sqlite3.TunixFile](file)
	descriptor := f.Fh
	f.Fh = -1
	defer func() { f.Fh = descriptor }()
	return function[syncFunc](t.own.FxSync)(tls, file, flags)
}

// Checkpoint copies the log on the writing connection. No operation may be in progress.
func (s *Store) Checkpoint(mode string) error {
	_, _, err := s.writer.conn.queryRow("PRAGMA wal_checkpoint(" + mode + ")")
	return err
}
