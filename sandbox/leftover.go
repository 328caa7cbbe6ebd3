package sandbox

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"syscall"
)

const (
	// maxTempNames bounds how many entries of the directory for temporary files
	// are looked at, and maxLeftover how many files and directories are deleted or
	// moved: what is too much for one start is deleted at the next ones.
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
	if err := s.empty(root); err != nil {
		return err
	}
	return temp.Remove(name)
}

// empty deletes what is in a root, and goes no deeper than one directory: what
// lies deeper is moved up first. So it costs no more to delete directories that
// a program put one into the other by the thousand, and when it ends early it
// has got on. Nothing in there leads out of the root.
func (s *sweep) empty(root *os.Root) error {
	return s.each(root, ".", func(e os.DirEntry) error {
		if !e.IsDir() {
			return root.Remove(e.Name())
		}
		// Programs leave directories that cannot be written, as caches do.
		if err := root.Chmod(e.Name(), 0o700); err != nil {
			return err
		}
		if err := s.each(root, e.Name(), func(in os.DirEntry) error { return s.raise(root, path.Join(e.Name(), in.Name()), in.IsDir()) }); err != nil {
			return err
		}
		return root.Remove(e.Name())
	})
}

// raise deletes a file, and moves a directory up.
func (s *sweep) raise(root *os.Root, name string, isDir bool) error {
	if !isDir {
		return root.Remove(name)
	}
	if err := root.Chmod(name, 0o700); err != nil {
		return err
	}
	return root.Rename(name, rand.Text())
}

// each does something with every entry of a directory, which must not be there
// under its name afterwards.
func (s *sweep) each(root *os.Root, name string, do func(e os.DirEntry) error) error {
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
			if s.left--; s.left < 0 {
				return errEnough
			}
			if err := do(e); err != nil {
				return err
			}
		}
	}
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
