package sandbox

import (
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"syscall"
)

const (
	// maxTempNames bounds how many entries of the directory for temporary files
	// are looked at, and maxLeftover how many files and directories are deleted:
	// what is too much for one start is deleted at the next ones.
	maxTempNames = 50_000
	maxLeftover  = 2_000
)

// errEnough ends a deletion that went on for long enough.
var errEnough = errors.New("sandbox: enough was deleted for once")

// removeLeftovers deletes directories for temporary files whose owners were
// killed. It is a courtesy: what cannot be deleted stays.
func removeLeftovers() {
	temp, err := os.OpenRoot(os.TempDir())
	if err != nil {
		return
	}
	defer temp.Close()
	dir, err := temp.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	s := sweep{left: maxLeftover}
	for range maxTempNames / namesAtOnce {
		names, err := dir.Readdirnames(namesAtOnce)
		for _, name := range names {
			if strings.HasPrefix(name, tempPrefix) && errors.Is(s.leftover(temp, name), errEnough) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

const namesAtOnce = 500

// sweep is a deletion that ends.
type sweep struct{ left int }

// leftover deletes a directory that is this user's own and that nobody holds.
// It goes through no link: each name is looked at first, and what is opened is
// compared with it.
func (s *sweep) leftover(temp *os.Root, name string) error {
	info, err := temp.Lstat(name)
	if err != nil || !info.IsDir() || !ownedByMe(info) {
		return err
	}
	root, err := temp.OpenRoot(name)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if opened, err := dir.Stat(); err != nil || !os.SameFile(info, opened) {
		return err
	}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}
	if err := s.empty(root, "."); err != nil {
		return err
	}
	return temp.Remove(name)
}

// empty deletes what is in a directory of a root. Nothing in there leads out of
// the root.
func (s *sweep) empty(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		// Some file systems count entries anew after a deletion.
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
		entries, err := dir.ReadDir(namesAtOnce)
		if err != nil {
			return ignoring(io.EOF, err)
		}
		for _, e := range entries {
			if err := s.entry(root, path.Join(name, e.Name()), e.IsDir()); err != nil {
				return err
			}
		}
	}
}

func (s *sweep) entry(root *os.Root, name string, isDir bool) error {
	if s.left--; s.left < 0 {
		return errEnough
	}
	if isDir {
		// Programs leave directories that cannot be written, as caches do.
		if err := root.Chmod(name, 0o700); err != nil {
			return err
		}
		if err := s.empty(root, name); err != nil {
			return err
		}
	}
	return root.Remove(name)
}

func ignoring(harmless, err error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}

func ownedByMe(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
