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

// SQLite locks files as POSIX has it, and POSIX has it that a process loses all
// its locks on a file when it closes any descriptor of it. A tool that reads
// the shared memory beside a journal, where it is agreed who reads and who
// writes, would let another process write into a transaction of this one.
//
// Those locks are therefore bound to the open file, of which SQLite has one for
// each shared memory, and only its own end gives them up (fcntl(2), "Open file
// description locks"). To processes that lock the other way they are the same
// locks. The database's locks stay as they are: SQLite asks the shared memory
// before it relies on them (unixIsSharingShmNode), which is why the header of
// a journal that is open may be looked at.

// The commands of fcntl(2) for such locks, which package syscall does not have.
const (
	ofdGetLock = 36
	ofdSetLock = 37
)

// pendingByte is where the locks of a database begin (os.h); those of the
// shared memory are far below.
const pendingByte = 0x40000000

// firstShmByte is where the locks of shared memory begin (UNIX_SHM_BASE).
const firstShmByte = 120

type fcntlFunc = func(tls *libc.TLS, fd, command int32, args uintptr) int32

// bindLocks makes SQLite's locks of shared memory those of a description, in
// the whole process.
func bindLocks(tls *libc.TLS) error {
	name, err := libc.CString("fcntl")
	if err != nil {
		return fmt.Errorf("sqlite: name a system call: %w", err)
	}
	defer libc.Xfree(tls, name)
	system := at[sqlite3.Tsqlite3_vfs](files.base)
	files.fcntl = function[func(*libc.TLS, uintptr, uintptr) uintptr](system.FxGetSystemCall)(tls, files.base, name)
	if files.fcntl == 0 {
		return errors.New("sqlite: there is no fcntl")
	}
	set := function[func(*libc.TLS, uintptr, uintptr, uintptr) int32](system.FxSetSystemCall)
	if rc := set(tls, files.base, name, address(fcntl)); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("sqlite: replace fcntl: code %d", rc)
	}
	return nil
}

func fcntl(tls *libc.TLS, fd, command int32, args uintptr) int32 {
	system := function[fcntlFunc](files.fcntl)
	bound := int32(ofdSetLock)
	switch command {
	case sqlite3.F_SETLK:
	case sqlite3.F_GETLK:
		bound = ofdGetLock
	default:
		return system(tls, fd, command, args)
	}
	lock := at[sqlite3.Tflock](*at[uintptr](args))
	if lock.Fl_start >= pendingByte {
		return system(tls, fd, command, args)
	}
	lock.Fl_pid = 0 // or the system refuses
	failure := lockDescription(tls, fd, bound, args)
	switch {
	case failure == syscall.EINVAL:
		// A system without such locks.
	case failure != 0:
		*at[int32](libc.X__errno_location(tls)) = int32(failure)
		return -1
	case command != sqlite3.F_SETLK:
		return 0
	case lock.Fl_type != syscall.F_UNLCK:
		files.bound.add(fd, lock)
		return 0
	case files.bound.remove(fd, lock):
		return 0
	default:
		// What was locked before this function was there is given up as well.
	}
	return system(tls, fd, command, args)
}

// lockDescription makes the system call, which never waits (but for the server of a
// network file system, where SQLite shares no log), and does without the
// scheduler's leave for one that may: a commit has half a dozen of these. Systems
// of 32 bits know such locks by another call, which SQLite's own function makes.
func lockDescription(tls *libc.TLS, fd, command int32, args uintptr) syscall.Errno {
	if unsafe.Sizeof(args) < 8 {
		if function[fcntlFunc](files.fcntl)(tls, fd, command, args) == 0 {
			return 0
		}
		return syscall.Errno(*at[int32](libc.X__errno_location(tls)))
	}
	_, _, failure := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), uintptr(command), *at[uintptr](args))
	return failure
}

// boundLocks are the bytes of shared memory, by descriptor, that were locked for
// a description: to give those up takes one call. What a descriptor leaves here
// when it is closed does no harm, because another of its number locks this way
// from the beginning.
type boundLocks struct {
	mu    sync.Mutex
	bytes map[int32]uint64
}

// bitsOf has a bit for each byte that a lock covers, and is 0 for one that
// reaches beyond the locks of shared memory.
func bitsOf(lock *sqlite3.Tflock) uint64 {
	first := lock.Fl_start - firstShmByte
	if first < 0 || lock.Fl_len <= 0 || first+lock.Fl_len > 64 {
		return 0
	}
	return (1<<lock.Fl_len - 1) << first
}

func (b *boundLocks) add(fd int32, lock *sqlite3.Tflock) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes[fd] |= bitsOf(lock)
}

// remove reports whether nothing but such locks can have been in the range.
func (b *boundLocks) remove(fd int32, lock *sqlite3.Tflock) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	bits := bitsOf(lock)
	all := bits != 0 && b.bytes[fd]&bits == bits
	b.bytes[fd] &^= bits
	return all
}
