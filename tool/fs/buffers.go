package fs

import (
	"context"
	"fmt"
	"path/filepath"
	"unicode/utf8"
)

// Buffers are the texts of files as another program has them, such as an editor with
// changes that are not saved. A path is absolute, and its file is on the disk: the tools
// resolve and open each path before, so that a buffer opens nothing outside the
// workspace. An implementation is safe for concurrent use.
type Buffers interface {
	// Text returns the text of a file. After an error the tools use the disk.
	Text(ctx context.Context, path string) (string, error)
	// SetText replaces the text of a file and saves it.
	SetText(ctx context.Context, path, text string) error
}

// buffered returns the text of a file in the buffers in place of that on the disk, and
// reports whether there is one. Only UTF-8 is exchanged as text without loss.
func (w *Workspace) buffered(ctx context.Context, p string, disk []byte) (text []byte, held bool) {
	if w.buffers == nil || isBinary(disk) || !utf8.Valid(disk) {
		return nil, false
	}
	s, err := w.buffers.Text(ctx, filepath.Join(w.dir, p))
	if err != nil || len(s) > maxEdit || !utf8.ValidString(s) {
		return nil, false
	}
	return []byte(s), true
}

// setBuffer replaces the text of a file in the buffers.
func (w *Workspace) setBuffer(ctx context.Context, p string, text []byte) error {
	if err := w.buffers.SetText(ctx, filepath.Join(w.dir, p), string(text)); err != nil {
		return fmt.Errorf("%s: the editor did not take the text: %w", quote(p), err)
	}
	return nil
}
