//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package fs

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// The lock is held for one update. A longer holder is another kind of program; waiting
// for it would only block the call.
const (
	lockPatience = 5 * time.Second
	lockPoll     = 5 * time.Millisecond
)

// lockFile takes the file's advisory lock, which closing the file releases. The lock
// belongs to the open file, so it also separates the workspaces of one process. A file
// system without locks is used without one.
func lockFile(ctx context.Context, p string, f *os.File) error {
	deadline := time.Now().Add(lockPatience)
	for {
		err := flock(f)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil
		}
		if time.Now().After(deadline) {
			return conflict("%s is locked by another program", quote(p))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}

func flock(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = conn.Control(func(fd uintptr) { lockErr = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB) })
	return errors.Join(err, lockErr)
}

// keepOwner gives a file the owner and the group of another file if this process may,
// and returns the permissions that it can then have. Only root may give a file to
// another user, and must, so that a run as root does not take over files in a user's
// tree.
func keepOwner(f *os.File, like os.FileInfo) os.FileMode {
	mode := like.Mode().Perm()
	was, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return mode
	}
	if os.Geteuid() != 0 || f.Chown(int(was.Uid), int(was.Gid)) != nil {
		_ = f.Chown(-1, int(was.Gid))
	}
	if info, err := f.Stat(); err == nil {
		if is, ok := info.Sys().(*syscall.Stat_t); ok && is.Gid == was.Gid {
			return mode
		}
	}
	return inAnotherGroup(mode)
}

// inAnotherGroup returns the permissions of a file that loses its group. The members of
// both groups had different rights, so both get only the rights that are common to
// group and others.
func inAnotherGroup(mode os.FileMode) os.FileMode {
	both := mode >> 3 & mode & 0o7
	return mode&0o700 | both<<3 | both
}
