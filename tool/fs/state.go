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

// The limits of [Workspace.State]. It runs after every call that may have changed a
// file, so it must be cheap.
const (
	maxStateFiles = 20_000
	// maxStateFile is the size up to which a file is identified by its content; a
	// larger one is identified by size and time.
	maxStateFile = 256 << 10
	// racy is the minimum age of a change for which size and time prove that no other
	// change followed, because file systems have coarse timestamps.
	racy = 2 * time.Second
)

// ErrTooManyFiles is returned for a tree that is too large to examine after every call.
var ErrTooManyFiles = errors.New("the workspace has too many files for its state to be known")

// state caches the contents of files, so that only changed files are read again.
type state struct {
	mu    sync.Mutex
	files map[string]fileState
	// most bounds the number of files.
	most int
}

// fileState is the last known state of a file.
type fileState struct {
	size  int64
	mode  fs.FileMode
	time  time.Time
	taken time.Time
	sum   [sha256.Size]byte
}

// State identifies the content of the workspace: the names, the contents and the
// permissions of its files, without version control and the files of [Options.Own]. The
// same tree has the same state in every process, and different trees have different
// states. The error is [ErrTooManyFiles] or that of a directory or a file that could
// not be read.
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

// fileState examines a file again unless size and time prove that it is unchanged.
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
