package fs

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"

	"github.com/pawlrun/pawl/tool"
)

// maxEntries bounds the entries of a listing or a glob.
const maxEntries = 500

type listArgs struct {
	Path string `json:"path,omitempty" jsonschema:"path of the directory, relative to the workspace; the workspace itself when absent"`
}

func (w *Workspace) listTool() tool.Tool {
	t := tool.New("fs.list", "List a directory of the workspace: directories end in a slash, files come with their size. At most 500 entries.", within(w, w.list))
	w.reads(&t, "list", pathOf, true)
	return t
}

func (w *Workspace) list(_ context.Context, a listArgs) (tool.Result, error) {
	p, err := w.resolve(cmp.Or(a.Path, "."))
	if err != nil {
		return tool.Result{}, err
	}
	entries, err := w.entries(p)
	if err != nil {
		return tool.Result{}, err
	}
	var out page
	shown := 0
	for _, e := range entries {
		if shown == maxEntries || !out.add(w.entry(p, e)) {
			break
		}
		shown++
	}
	switch {
	case len(entries) == 0:
		out.note("the directory is empty")
	case len(entries) == maxDirEntries:
		out.note("%d of more than %d entries; fs.glob finds names", shown, maxDirEntries)
	case shown < len(entries):
		out.note("%d of %d entries; fs.glob finds names", shown, len(entries))
	}
	return out.result(shown < len(entries)), nil
}

func (w *Workspace) entry(dir string, e fs.DirEntry) string {
	name := quote(e.Name())
	switch {
	case e.IsDir():
		return name + "/"
	case e.Type()&fs.ModeSymlink != 0:
		target, err := w.root.Readlink(path.Join(dir, e.Name()))
		if err != nil {
			return name + " (symbolic link)"
		}
		return name + " -> " + quote(target)
	case !e.Type().IsRegular():
		return name + " (special file)"
	}
	info, err := w.root.Lstat(path.Join(dir, e.Name()))
	if err != nil {
		return name
	}
	return fmt.Sprintf("%s (%d bytes)", name, info.Size())
}
