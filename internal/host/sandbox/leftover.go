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
// examined.
const maxTempNames = 50_000

// removeLeftovers deletes directories for temporary files whose owners were killed. It
// ignores errors.
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

// empty deletes the content of a root. It never descends more than one level, because
// it first moves deeper entries up, so it needs few open files even for thousands of
// nested directories. Nothing in the content leads out of the root.
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

// raise moves the content of a directory up. It makes the directory writable first,
// because caches leave read-only directories.
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
