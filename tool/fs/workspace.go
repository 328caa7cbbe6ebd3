// Package fs holds the file tools. Every path is resolved inside one workspace
// through os.Root, so that neither "..", nor a symbolic link, nor a swap
// between decision and use leads out of it.
package fs

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// Workspace is the directory that a run's file tools work in, with what the
// run has read of it. It is safe for concurrent use.
type Workspace struct {
	dir  string
	root *os.Root

	mu   sync.Mutex
	seen map[string][sha256.Size]byte
}

// Open opens a workspace directory.
func Open(dir string) (*Workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("fs: open workspace %s: %w", dir, err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("fs: open workspace %s: %w", dir, err)
	}
	return &Workspace{dir: abs, root: root, seen: map[string][sha256.Size]byte{}}, nil
}

// Close releases the directory.
func (w *Workspace) Close() error { return w.root.Close() }

// Tools are the workspace's file tools.
func (w *Workspace) Tools() []tool.Tool {
	return []tool.Tool{w.readTool(), w.editTool()}
}

// local turns a path of the model's into one inside the workspace.
func (w *Workspace) local(p string) (string, error) {
	if filepath.IsAbs(p) {
		rel, err := filepath.Rel(w.dir, p)
		if err != nil {
			return "", outside(p)
		}
		p = rel
	}
	p = path.Clean(filepath.ToSlash(p))
	if !filepath.IsLocal(p) {
		return "", outside(p)
	}
	return p, nil
}

func outside(p string) error {
	return &tool.Error{Type: event.ErrorOutsidePaths, Message: fmt.Sprintf("%s is outside the workspace; use a path inside it", p)}
}

// explain turns a file system error into one that a model can act on.
func explain(p string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &tool.Error{Type: event.ErrorNotFound, Message: p + " does not exist", Err: err}
	case strings.Contains(err.Error(), "path escapes from parent"):
		return outside(p)
	}
	return fmt.Errorf("%s: %w", p, errors.Unwrap(err))
}

func (w *Workspace) readFile(p string) ([]byte, error) {
	data, err := w.root.ReadFile(p)
	if err != nil {
		return nil, explain(p, err)
	}
	return data, nil
}

// remember notes which content of a file the model has seen.
func (w *Workspace) remember(p string, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[p] = sha256.Sum256(data)
}

// current says whether the model's last view of a file is what is there.
func (w *Workspace) current(p string, data []byte) (known, same bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum, known := w.seen[p]
	return known, sum == sha256.Sum256(data)
}

// access names the file that a call's "path" argument is about.
func (w *Workspace) access(write bool) func(json.RawMessage) []event.Access {
	return func(args json.RawMessage) []event.Access {
		var a struct{ Path string }
		if err := json.Unmarshal(args, &a); err != nil {
			return nil
		}
		p, err := w.local(a.Path)
		if err != nil {
			return []event.Access{{Key: "*", Write: write}}
		}
		return []event.Access{{Key: "file:" + w.dir + "/" + p, Write: write}}
	}
}

func describe(verb string) func(json.RawMessage) string {
	return func(args json.RawMessage) string {
		var a struct{ Path string }
		_ = json.Unmarshal(args, &a)
		return strings.TrimSpace(verb + " " + a.Path)
	}
}
