package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

type writeArgs struct {
	Path    string `json:"path" jsonschema:"path of the file, relative to the workspace"`
	Content string `json:"content" jsonschema:"the whole new content of the file"`
}

const writeName = "fs.write"

// writeTool declares the tool idempotent: writing the same content again changes
// nothing, and a file that has changed meanwhile is not written.
func (w *Workspace) writeTool() tool.Tool {
	t := tool.NewWithCall(writeName, "Write a whole file, with the directories above it. A file that exists must have been read before and be unchanged since.",
		withinCall(w, w.write))
	t.Aliases = []string{"write", "write_file"}
	w.writes(&t, "write")
	t.Effect = event.EffectIdempotent
	return t
}

func (w *Workspace) write(ctx context.Context, c tool.Call, a writeArgs) (tool.Result, error) {
	p, err := w.resolve(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	content := []byte(a.Content)
	if len(content) > maxEdit {
		return tool.Result{}, invalid("the content has %d bytes; at most %d are written", len(content), maxEdit)
	}
	done, kept := "wrote", ""
	_, err = w.root.Stat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		done = "created with"
		// The file is complete on the disk, also if the editor cannot open it.
		if err = w.create(p, content); err == nil && w.buffers != nil && utf8.Valid(content) {
			_ = w.setBuffer(ctx, p, content)
		}
	case err != nil:
		err = explain(p, err)
	default:
		err = w.update(ctx, p, func(old []byte) (_ []byte, err error) {
			if content, kept, err = formatOf(old).keep(p, content); err != nil {
				return nil, err
			}
			if bytes.Equal(old, content) {
				done = "has already these"
				return content, nil
			}
			return content, unchanged(c, p, old)
		})
	}
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Output: fmt.Sprintf("%s: %s %d bytes%s", quote(p), done, len(content), kept), Files: w.now(p, content)}, nil
}

// create creates a new file. Its content is complete before its name exists, and it
// does not replace a file that another program creates first.
func (w *Workspace) create(p string, content []byte) error {
	if err := w.root.MkdirAll(path.Dir(p), 0o755); err != nil {
		return explain(p, err)
	}
	temp, err := w.temp(p, content, nil)
	if err != nil {
		return err
	}
	defer w.root.Remove(temp)
	err = w.root.Link(temp, p)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		// Some file systems have no links.
		err = w.createInPlace(p, content)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return conflict("%s was created by somebody else just now; read it first", quote(p))
	case err != nil:
		return explain(p, err)
	}
	return nil
}

func (w *Workspace) createInPlace(p string, content []byte) error {
	f, err := w.root.OpenFile(p, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = w.root.Remove(p)
	}
	return err
}

// Change is the change that a call makes to a file: a new content, or a replacement for
// a part of the old one, for all occurrences if All is set.
type Change struct {
	Path, Old, New string
	Overwrite, All bool
}

// ChangeOf returns the change that a call makes, to show to people before they decide;
// false for a call that is not known to change a file.
func ChangeOf(tool string, args json.RawMessage) (c Change, known bool) {
	var a struct {
		Path       string
		Content    *string
		OldString  *string `json:"old_string"`
		NewString  *string `json:"new_string"`
		ReplaceAll bool    `json:"replace_all"`
	}
	switch err := json.Unmarshal(args, &a); {
	case err != nil || a.Path == "":
		return Change{}, false
	case tool == writeName && a.Content != nil:
		return Change{Path: a.Path, New: *a.Content, Overwrite: true}, true
	case tool == editName && a.OldString != nil && a.NewString != nil && *a.OldString != "":
		return Change{Path: a.Path, Old: *a.OldString, New: *a.NewString, All: a.ReplaceAll}, true
	}
	return Change{}, false
}
