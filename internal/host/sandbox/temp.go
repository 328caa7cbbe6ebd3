package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// tempPrefix begins the names of directories for temporary files. The owner of such a
// directory holds a lock on it, which distinguishes it from one that a killed process
// left behind.
const tempPrefix = "pawl-box-"

var errNoTemp = errors.New("sandbox: no directory for temporary files can be made")

// tempDir is a directory for temporary files of this process.
type tempDir struct {
	path string
	lock *os.File
}

// maxTempTries bounds how often another process may remove a new directory as a
// leftover before it is locked.
const maxTempTries = 20

// newTempDir creates a directory, which the caller must remove.
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

// isAt reports whether a path names an open directory.
func isAt(dir *os.File, path string) bool {
	opened, err := dir.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, named)
}

// remove deletes the directory with its content, and then releases its lock.
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
