package fs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// The bounds of what [Workspace.State] looks at. It is meant to be asked for
// after every call that may have changed a file, so it must cost little.
const (
	maxStateFiles = 20_000
	// maxStateFile is the size up to which a file is known by its content; a
	// larger one is known by its size and its time.
	maxStateFile = 256 << 10
	// racy is how old a change must be for size and time to prove that there
	// was no other one after it: file systems tell times in steps.
	racy = 2 * time.Second
)

// ErrTooManyFiles is returned for a tree that is too large to be looked at
// after every call.
var ErrTooManyFiles = errors.New("the workspace has too many files for its state to be known")

// state remembers the content of files, so that only what changed since is read
// again.
type state struct {
	mu    sync.Mutex
	files map[string]fileState
	// most is how many files are looked at.
	most int
}

// fileState is what a file was when it was looked at last.
type fileState struct {
	size  int64
	mode  fs.FileMode
	time  time.Time
	taken time.Time
	sum   [sha256.Size]byte
}

// State identifies the content of the workspace: the names, the contents and the
// permissions of its files, without version control and what [Options.Own] names.
// The same tree gives the same state in every process, and different trees give
// different states. The error is [ErrTooManyFiles] or that of a directory or a file
// that could not be read.
func (w *Workspace) State(ctx context.Context) (string, error) {
	w.state.mu.Lock()
	defer w.state.mu.Unlock()
	seen := make(map[string]fileState, len(w.state.files))
	whole := sha256.New()
	k := walker{w: w, visit: func(p string, e fs.DirEntry) error {
		if len(seen) == w.state.most {
			return ErrTooManyFiles
		}
		info, err := e.Info()
		if err != nil {
			return explain(p, err)
		}
		if w.own != nil && w.own(p, info) {
			return nil
		}
		of, err := w.fileState(ctx, p, info)
		if err != nil {
			return err
		}
		seen[p] = of
		fmt.Fprintf(whole, "%q %o ", p, info.Mode())
		whole.Write(of.sum[:])
		return nil
	}}
	if err := k.walk(ctx, "."); err != nil {
		return "", fmt.Errorf("fs: state of the workspace: %w", err)
	}
	if k.unread > 0 {
		return "", fmt.Errorf("fs: state of the workspace: %d directories could not be read", k.unread)
	}
	w.state.files = seen
	return hex.EncodeToString(whole.Sum(nil)[:16]), nil
}

// fileState looks at a file again where size and time do not prove that it is as
// it was.
func (w *Workspace) fileState(ctx context.Context, p string, info fs.FileInfo) (fileState, error) {
	now := fileState{size: info.Size(), mode: info.Mode(), time: info.ModTime(), taken: time.Now()}
	if old, ok := w.state.files[p]; ok && old.size == now.size && old.mode == now.mode && old.time.Equal(now.time) && old.taken.Sub(old.time) > racy {
		return old, nil
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := w.root.Readlink(p)
		if err != nil {
			return now, explain(p, err)
		}
		now.sum = sha256.Sum256([]byte(target))
	case !info.Mode().IsRegular():
	case info.Size() > maxStateFile:
		now.sum = sha256.Sum256(fmt.Appendf(nil, "%d %d", info.Size(), info.ModTime().UnixNano()))
	default:
		f, _, err := w.open(p, os.O_RDONLY)
		if err != nil {
			return now, err
		}
		defer f.Close()
		content, err := load(ctx, p, f, maxStateFile)
		if err != nil {
			return now, err
		}
		now.sum = sha256.Sum256(content)
	}
	return now, nil
}
