package sandbox

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// maxTempNames bounds how many entries of the directory for temporary files are
// looked at.
const maxTempNames = 50_000

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
	names, _ := dir.Readdirnames(maxTempNames)
	for _, name := range names {
		if strings.HasPrefix(name, tempPrefix) {
			_ = removeLeftover(temp, name)
		}
	}
}

// removeLeftover deletes an unlocked directory of this user. It follows no link: it
// checks each name first and compares the opened file with it.
func removeLeftover(temp *os.Root, name string) error {
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
	if err := empty(root); err != nil {
		return err
	}
	return temp.Remove(name)
}

// empty deletes what is in a root, and goes no deeper than one directory: what
// lies deeper is moved up first. So it needs few files open to delete directories
// that a program put one into the other by the thousand. Nothing in there leads out of
// the root.
func empty(root *os.Root) error {
	for {
		entries, err := fs.ReadDir(root.FS(), ".")
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, e := range entries {
			if e.IsDir() {
				err = raise(root, e.Name())
			}
			if err = errors.Join(err, root.Remove(e.Name())); err != nil {
				return err
			}
		}
	}
}

// raise moves what is in a directory up. Programs leave directories that cannot be
// written, as caches do.
func raise(root *os.Root, name string) error {
	if err := root.Chmod(name, 0o700); err != nil {
		return err
	}
	entries, err := fs.ReadDir(root.FS(), name)
	for _, e := range entries {
		in := path.Join(name, e.Name())
		if e.IsDir() {
			err = errors.Join(err, root.Chmod(in, 0o700))
		}
		err = errors.Join(err, root.Rename(in, rand.Text()))
	}
	return err
}

func ownedByMe(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
