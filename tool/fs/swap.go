package fs

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path"
	"syscall"
	"unicode/utf8"
)

// update replaces a file's content by the result of change, as one step. It locks the
// file, so that updates by this process and by others like it are serialized, and
// renames a complete new file over it, so that no reader ever sees half of it. A
// program that does not take the lock can still write between the comparison in change
// and the rename; that cannot be prevented.
//
// The file keeps its owner and its group if this process may set them, and its
// permissions except those that another group would gain. A file with several names, or
// one that is a mount point, is written in place, because a new file would not be the
// same file.
func (w *Workspace) update(ctx context.Context, p string, change func(old []byte) ([]byte, error)) error {
	f, info, err := w.lock(ctx, p)
	if err != nil {
		return err
	}
	defer f.Close()
	old, err := load(ctx, p, f, maxEdit)
	if err != nil {
		return err
	}
	text, held := w.buffered(ctx, p, old)
	if held {
		old = text
	}
	content, err := change(old)
	if err != nil || bytes.Equal(old, content) {
		return err
	}
	if held && utf8.Valid(content) {
		return w.setBuffer(ctx, p, content)
	}
	if links(info) > 1 {
		return inPlace(p, f, old, content)
	}
	err = w.swap(p, content, info)
	if errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EROFS) {
		return inPlace(p, f, old, content)
	}
	return err
}

// swap replaces a file by a new one with the content.
func (w *Workspace) swap(p string, content []byte, like os.FileInfo) error {
	temp, err := w.temp(p, content, like)
	if err != nil {
		return err
	}
	if err := w.root.Rename(temp, p); err != nil {
		_ = w.root.Remove(temp)
		return explain(p, err)
	}
	return nil
}

// inPlace writes the content into the file itself. If that fails, it tries to restore
// the old content.
func inPlace(p string, f *os.File, old, content []byte) error {
	err := rewrite(f, content)
	if err == nil {
		return nil
	}
	return explain(p, errors.Join(err, rewrite(f, old)))
}

func rewrite(f *os.File, content []byte) error {
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(content))); err != nil {
		return err
	}
	return f.Sync()
}

// links returns the number of names of a file.
func links(info os.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Nlink)
	}
	return 1
}

// lock opens a file for an update and locks it. If the file was replaced while lock
// waited, it locks the new one instead. It opens the file for writing so that a
// read-only file is rejected, which the rename alone would not notice.
func (w *Workspace) lock(ctx context.Context, p string) (*os.File, os.FileInfo, error) {
	for {
		f, info, err := w.open(p, os.O_RDWR)
		if err != nil {
			return nil, nil, err
		}
		if err := lockFile(ctx, p, f); err != nil {
			f.Close()
			return nil, nil, err
		}
		now, err := w.root.Stat(p)
		if err == nil && os.SameFile(info, now) {
			return f, info, nil
		}
		f.Close()
		if err != nil {
			return nil, nil, explain(p, err)
		}
	}
}

// temp writes content to a new file beside p, synced to disk. It has the owner and
// permissions of like, the file that it will replace, if there is one.
func (w *Workspace) temp(p string, content []byte, like os.FileInfo) (string, error) {
	name := path.Join(path.Dir(p), ".pawl-"+rand.Text())
	f, err := w.empty(name, like)
	if f == nil {
		return "", explain(p, err)
	}
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = w.root.Remove(name)
		return "", explain(p, err)
	}
	return name, nil
}

// empty creates a new file with the mode of an existing one, if there is one. Until it
// has content, only this process's user may read it, because the permissions may hide
// the content from others.
func (w *Workspace) empty(name string, like os.FileInfo) (*os.File, error) {
	if like == nil {
		return w.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	}
	f, err := w.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return f, f.Chmod(keepOwner(f, like))
}
