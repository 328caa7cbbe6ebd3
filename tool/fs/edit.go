package fs

import (
	"context"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

type editArgs struct {
	Path       string `json:"path" jsonschema:"path of the file, relative to the workspace"`
	OldString  string `json:"old_string" jsonschema:"the exact text to replace, without line numbers; it must occur once"`
	NewString  string `json:"new_string" jsonschema:"the text to put in its place"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence"`
}

func (w *Workspace) editTool() tool.Tool {
	t := tool.New("fs.edit", "Replace a piece of text in a file. The file must have been read before and be unchanged since.",
		func(_ context.Context, a editArgs) (tool.Result, error) { return w.edit(a) })
	t.Access, t.Describe = w.access(true), describe("edit")
	return t
}

func (w *Workspace) edit(a editArgs) (tool.Result, error) {
	p, err := w.local(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	data, err := w.readFile(p)
	if err != nil {
		return tool.Result{}, err
	}
	switch known, same := w.current(p, data); {
	case !known:
		return tool.Result{}, conflict("%s has not been read in this run; read it before editing it", p)
	case !same:
		return tool.Result{}, conflict("%s has changed since it was read; read it again", p)
	}
	old := string(data)
	n := strings.Count(old, a.OldString)
	switch {
	case a.OldString == "" || a.OldString == a.NewString:
		return tool.Result{}, conflict("old_string must be some text that differs from new_string")
	case n == 0:
		return tool.Result{}, conflict("old_string does not occur in %s; it must match exactly, white space included", p)
	case n > 1 && !a.ReplaceAll:
		return tool.Result{}, conflict("old_string occurs %d times in %s; give more context, or set replace_all", n, p)
	}
	edited := strings.ReplaceAll(old, a.OldString, a.NewString)
	if err := w.swap(p, data, []byte(edited)); err != nil {
		return tool.Result{}, err
	}
	line := strings.Count(old[:strings.Index(old, a.OldString)], "\n") + 1
	return tool.Result{Output: fmt.Sprintf("%s: replaced %d occurrence(s), the first at line %d", p, n, line)}, nil
}

func conflict(format string, args ...any) error {
	return &tool.Error{Type: event.ErrorConflict, Message: fmt.Sprintf(format, args...)}
}

// swap replaces a file's content if it is still old: the new content goes to a
// file beside it, which is then renamed over it, so that no reader ever sees
// half of it. A write that happens between the comparison and the rename is
// lost; the comparison comes last to make that moment short.
func (w *Workspace) swap(p string, old, content []byte) error {
	mode := os.FileMode(0o644)
	if info, err := w.root.Stat(p); err == nil {
		mode = info.Mode().Perm()
	}
	temp := path.Join(path.Dir(p), ".pawl-"+path.Base(p)+"-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	f, err := w.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return explain(p, err)
	}
	_, err = f.Write(content)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil && old != nil {
		if now, readErr := w.root.ReadFile(p); readErr != nil || string(now) != string(old) {
			err = conflict("%s changed while it was being edited; read it again", p)
		}
	}
	if err == nil {
		err = w.root.Rename(temp, p)
	}
	if err != nil {
		_ = w.root.Remove(temp)
		return err
	}
	w.remember(p, content)
	return nil
}
