package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// tempPrefix begins the names of directories for temporary files. Each of them is
// locked while its owner lives, which distinguishes one in use from one that a
// killed process left behind.
const tempPrefix = "pawl-box-"

var errNoTemp = errors.New("sandbox: no directory for temporary files can be made")

// tempDir is a directory for temporary files that is this process's own.
type tempDir struct {
	path string
	lock *os.File
}

// maxTempTries bounds how often a new directory is taken for one that was left
// behind, between its making and its lock.
const maxTempTries = 20

// newTempDir makes a directory that must be removed.
func newTempDir() (tempDir, error) {
	for range maxTempTries {
		path, err := os.MkdirTemp("", tempPrefix+"*")
		if err != nil {
			return tempDir{}, fmt.Errorf("%w: %w", errNoTemp, err)
		}
		t, mine, err := claim(path)
		if err != nil {
			return tempDir{}, errors.Join(fmt.Errorf("sandbox: lock a directory for temporary files: %w", err), os.RemoveAll(path))
		}
		if mine {
			return t, nil
		}
	}
	return tempDir{}, errors.New("sandbox: every new directory for temporary files is taken away at once")
}

// claim locks a new directory. mine is false if a cleanup of abandoned directories
// locked it first.
func claim(path string) (t tempDir, mine bool, err error) {
	lock, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return t, false, nil
	}
	if err != nil {
		return t, false, err
	}
	// A shared lock prevents an exclusive one, and also works on systems that lock
	// only files open for writing exclusively. Without locks, no process treats the
	// directory as abandoned.
	if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = nil
		}
		return t, false, err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil && isAt(lock, real) {
		return tempDir{path: real, lock: lock}, true, nil
	}
	lock.Close()
	return t, false, nil
}

// isAt reports whether an open directory is the one that a path names.
func isAt(dir *os.File, path string) bool {
	opened, err := dir.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, named)
}

// remove deletes the directory with what is in it, and then lets go of it.
func (t tempDir) remove() error {
	if t.lock == nil {
		return nil
	}
	defer t.lock.Close()
	root, err := os.OpenRoot(t.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(empty(root), root.Close())
	}
	if err == nil {
		err = os.Remove(t.path)
	}
	if err != nil {
		return fmt.Errorf("sandbox: delete temporary files: %w", err)
	}
	return nil
}
