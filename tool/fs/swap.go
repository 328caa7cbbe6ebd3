package fs

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"os"
	"path"
)

// update replaces a file's content by what change makes of it, as one step:
// the file is locked, so that updates of it by this process and by others of
// its kind take turns, and the new content lies complete beside it before it
// is renamed over it, so that no reader ever sees half. A program that does
// not take the lock can still write between the comparison that change makes
// and the rename; nothing short of its own cooperation prevents that.
//
// The file keeps its owner and its group where this process may set them, and its
// permissions but for what another group would gain by them.
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
	content, err := change(old)
	if err != nil {
		return err
	}
	if !bytes.Equal(old, content) {
		temp, err := w.temp(p, content, info)
		if err != nil {
			return err
		}
		if err := w.root.Rename(temp, p); err != nil {
			_ = w.root.Remove(temp)
			return explain(p, err)
		}
	}
	w.remember(p, sumOf(content))
	return nil
}

// lock opens a file for an update and locks it. The file may have been
// replaced while the lock was awaited; then the new one is locked instead. It
// is opened for writing so that a file that may not be written is refused,
// which the rename alone would not notice.
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

// unchanged fails unless the model has seen this content of the file.
func (w *Workspace) unchanged(p string, content []byte) error {
	sum, known := w.known(p)
	switch {
	case !known:
		return conflict("%s has not been read since this run was started or resumed; read it first", quote(p))
	case sum != sumOf(content):
		return conflict("%s has changed since it was read; read it again", quote(p))
	}
	return nil
}

// temp writes content to a new file beside p, on the disk before it returns.
// It looks like the file that it will replace, if there is one.
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

// empty makes a new file that looks like another one, if there is one, before
// anything is in it: nobody but this process's user may read there what the
// permissions of that keep from them.
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

func sumOf(content []byte) [sha256.Size]byte { return sha256.Sum256(content) }
