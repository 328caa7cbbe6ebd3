package sqlite

import (
	"errors"
	"syscall"
)

// logFile is how the writing connection reaches an open write-ahead log, which
// is where a commit waits for the disk:
//
//   - What a commit consists of is written at once, not in two writes for each
//     of its pages.
//   - The log is filled with zeros before it is written. Syncing bytes that
//     replace others costs half as much as making a file longer, because the
//     file system has nothing of its own to write.
//   - A sync leaves out the time of the last change (fdatasync), as it does in
//     a SQLite that was built with HAVE_FDATASYNC.
//   - A sync is left out where this connection has written nothing since its
//     last one. SQLite syncs the log before it copies it, because a commit may
//     not be on disk then; ours is before anybody sees it ("synchronous" is
//     FULL), and what a crash left behind is written anew ([logFile.rewrite]).
//     The first one is not left out: another program may have been the first to
//     read what a crash left, and has not written it anew.
//
// Zeros are no commit: to SQLite a log ends where a frame does not carry the log's
// salt. Only the holder of the log's write lock writes the log and its end, so the
// zeros overwrite nothing that counts; and SQLite shows a commit to others only
// after its sync, so no reader looks for pending writes. Writes that are pending
// when the lock is released belong to no commit and are dropped: written later they
// would replace what another process has committed meanwhile.
//
// A sync that fails is the last one: the system may forget what it could not
// write, and then the next sync succeeds without it.
type logFile struct {
	disk disk
	fd   int
	// database is the database of this log, as SQLite's file.
	database uintptr
	// dir is the directory of the log, until the entry of the log is synced.
	dir string
	// pending is data that is not yet passed to the system; offset is its place in the
	// file.
	pending []byte
	offset  int64
	// unsynced reports that data was passed to the system since the last sync, or that
	// there was no sync yet.
	unsynced bool
	// filled is the length up to which the file is known to have bytes that can be
	// overwritten.
	filled int64
	// unfillable is set if there was no space for filling.
	unfillable bool
	// lost is the error after which nothing is written any more.
	lost error
}

// disk is the part of the operating system that a log uses.
type disk struct {
	pread     func(fd int, p []byte, offset int64) (int, error)
	pwrite    func(fd int, p []byte, offset int64) (int, error)
	fdatasync func(fd int) error
	syncDir   func(dir string) error
}

func systemDisk() disk {
	return disk{pread: syscall.Pread, pwrite: syscall.Pwrite, fdatasync: syscall.Fdatasync, syncDir: syncDir}
}

const (
	// fillStep is how much is filled at once: enough for a dozen commits, and little
	// enough for the commit that waits for it.
	fillStep = 256 << 10
	// logHeader is the length of the header of a log (sqlite.org/fileformat.html, "WAL
	// File Format").
	logHeader = 32
	// maxPending bounds the pending data of a large transaction.
	maxPending = 1 << 20
)

// zeros is never written to.
var zeros [fillStep]byte

func (f *logFile) write(p []byte, offset int64) error {
	if f.lost != nil {
		return f.lost
	}
	if offset != f.offset+int64(len(f.pending)) || len(f.pending)+len(p) > maxPending {
		if err := f.flush(); err != nil {
			return err
		}
		f.offset = offset
	}
	f.pending = append(f.pending, p...)
	return nil
}

// flush passes pending data to the system.
func (f *logFile) flush() error {
	if len(f.pending) == 0 {
		return nil
	}
	err := f.writeAt(f.pending, f.offset)
	f.offset, f.pending = f.offset+int64(len(f.pending)), f.pending[:0]
	if err == nil && f.offset > f.filled {
		f.fill()
	}
	return err
}

// fill writes zeros after a commit that reached the end of the file. It only saves
// time: if it fails, the log grows with each commit.
func (f *logFile) fill() {
	if f.unfillable {
		return
	}
	f.unfillable = f.writeAt(zeros[:], f.offset) != nil
	f.filled = f.offset + fillStep
}

// sync returns when the flushed data is on disk, and after the first sync also the
// log's directory entry.
func (f *logFile) sync() error {
	if f.lost == nil && f.unsynced {
		f.lost = f.trySync()
		f.unsynced = f.lost != nil
	}
	return f.lost
}

func (f *logFile) trySync() error {
	err := retried(func() error { return f.disk.fdatasync(f.fd) })
	if err != nil || f.dir == "" {
		return err
	}
	if err := f.disk.syncDir(f.dir); err != nil {
		return err
	}
	f.dir = ""
	return nil
}

// erase overwrites a log that is no longer needed with zeros. It first invalidates
// the log, on disk as well, so that a crash does not leave a part that looks like a
// log. The file keeps its length for the following commits.
func (f *logFile) erase(size int64) error {
	if f.lost != nil {
		return f.lost
	}
	for done := int64(0); done < size; {
		part := min(size-done, fillStep)
		if done == 0 {
			part = min(size, logHeader)
		}
		if err := f.writeAt(zeros[:part], done); err != nil {
			return err
		}
		if done += part; done == logHeader {
			if err := f.sync(); err != nil {
				return err
			}
		}
	}
	return f.sync()
}

// rewrite writes the log again after a process abandoned it. The last sync may have
// failed, in which case the data is only in the system's cache: a power cut would
// remove that commit and everything written after it. No process writes meanwhile.
func (f *logFile) rewrite() {
	part := make([]byte, fillStep)
	size := int64(0)
	for f.lost == nil {
		n := 0
		err := retried(func() (err error) { n, err = f.disk.pread(f.fd, part, size); return err })
		if err == nil && n > 0 {
			err = f.writeAt(part[:n], size)
		}
		if f.lost = err; n <= 0 {
			break
		}
		size += int64(n)
	}
	if size > 0 && f.lost == nil {
		_ = f.sync()
	}
}

func (f *logFile) writeAt(p []byte, offset int64) error {
	f.unsynced = true
	for len(p) > 0 {
		n, err := f.disk.pwrite(f.fd, p, offset)
		switch {
		case err != nil && !errors.Is(err, syscall.EINTR):
			return err
		case err == nil && n == 0:
			return syscall.ENOSPC // the error code that SQLite understands
		}
		n = max(n, 0)
		p, offset = p[n:], offset+int64(n)
	}
	return nil
}

func retried(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
