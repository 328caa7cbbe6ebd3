package sqlite

import (
	"io/fs"
	"syscall"
)

// identity identifies the file that a path leads to.
type identity struct {
	dev, ino uint64
}

func identityOf(path string) (identity, error) {
	for {
		switch id, err := readIdentity(path); err {
		case nil:
			return id, nil
		case syscall.EINTR:
		default:
			return identity{}, &fs.PathError{Op: "stat", Path: path, Err: err}
		}
	}
}

func stat(path string) (identity, error) {
	var st syscall.Stat_t
	err := syscall.Stat(path, &st)
	return identity{dev: uint64(st.Dev), ino: st.Ino}, err //nolint:unconvert // Dev is 32 bits elsewhere
}
