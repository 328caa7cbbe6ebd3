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

// SQLite uses POSIX locks, and a process loses all its POSIX locks on a file when it
// closes any descriptor of it. A tool that reads the shared memory beside a journal, in
// which readers and writers synchronize, would thus let another process write into a
// transaction of this one. Those locks are therefore bound to the open file
// description, of which SQLite has one for each shared memory, and only closing that
// releases them (fcntl(2), "Open file description locks"). They conflict with the POSIX
// locks of other processes.
//
// The database's locks are unchanged: SQLite checks the shared memory before it relies
// on them (unixIsSharingShmNode), which is why the header of an open journal may be
// read.

// The commands of fcntl(2) for such locks, which package syscall lacks.
const (
	ofdGetLock = 36
	ofdSetLock = 37
)

// pendingByte is the offset of the locks of a database (os.h); those of the shared
// memory are far below.
const pendingByte = 0x40000000

// firstShmByte is the offset of the locks of shared memory (UNIX_SHM_BASE).
const firstShmByte = 120

type fcntlFunc = func(tls *libc.TLS, fd, command int32, args uintptr) int32

// bindLocks binds SQLite's locks of shared memory to open file descriptions, in the
// whole process.
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
	lock.Fl_pid = 0 // or the system rejects the call
	failure := lockDescription(tls, fd, bound, args)
	switch {
	case failure == syscall.EINVAL:
		// The system does not support such locks.
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
		// Locks from before this function was installed are released too.
	}
	return system(tls, fd, command, args)
}

// lockDescription makes the system call. It never waits (except for a network file
// system's server, and SQLite shares no log there), so it does not notify the
// scheduler: a commit makes half a dozen of these calls. 32-bit systems need another
// call, which SQLite's own function makes.
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

// boundLocks records, by descriptor, which bytes of shared memory were locked for a
// description, so that releasing them takes one call. Entries of a closed descriptor
// are harmless, because the next descriptor with its number locks in the same way.
type boundLocks struct {
	mu    sync.Mutex
	bytes map[int32]uint64
}

// bitsOf returns a bit for each byte that a lock covers; 0 if it extends beyond the
// locks of shared memory.
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

// remove reports whether the range contained only such locks.
func (b *boundLocks) remove(fd int32, lock *sqlite3.Tflock) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	bits := bitsOf(lock)
	all := bits != 0 && b.bytes[fd]&bits == bits
	b.bytes[fd] &^= bits
	return all
}
