//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package fs

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// The lock is held for as long as one update takes. Whoever holds it longer is
// another kind of program, and waiting for that would only hang the call.
const (
	lockPatience = 5 * time.Second
	lockPoll     = 5 * time.Millisecond
)

// lockFile takes the file's advisory lock, which closing the file releases. It
// counts for each open file, so it also separates the workspaces of one
// process. A file system without locks is used without.
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

// keepOwner gives a file to the owner of another, which only root may do for
// somebody else: a run as root on somebody's tree must not take files away.
func keepOwner(f *os.File, like os.FileInfo) {
	if st, ok := like.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}
