package fs

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"
	"path"
	"strings"

	"github.com/pawlrun/pawl/tool"
)

type globArgs struct {
	Pattern string `json:"pattern" jsonschema:"pattern of paths, such as **/*.go or cmd/{a,b}/main.go; ** stands for any number of directories"`
	Path    string `json:"path,omitempty" jsonschema:"directory that the pattern is relative to; the workspace when absent"`
}

func (w *Workspace) globTool() tool.Tool {
	t := tool.New("fs.glob", "Find files of the workspace by a pattern of their paths. At most 500, in the order of their names; .git and what git ignores are left out.", within(w, w.glob))
	w.reads(&t, "find", searched, true)
	return t
}

func (w *Workspace) glob(ctx context.Context, a globArgs) (tool.Result, error) {
	dir, pattern := split(cmp.Or(a.Path, "."), a.Pattern)
	base, err := w.resolve(dir)
	if err != nil {
		return tool.Result{}, err
	}
	match, err := compileGlob(pattern)
	if err != nil {
		return tool.Result{}, err
	}
	var out page
	shown, more := 0, false
	k := walker{w: w, depth: depthOf(pattern), match: func(p string) bool { return match.MatchString(below(base, p)) }, visit: func(p string, _ fs.DirEntry) error {
		if more = shown == maxEntries || !out.add(quote(p)); more {
			return fs.SkipAll
		}
		shown++
		return nil
	}}
	k.respectIgnores(base, pattern)
	if err := k.walk(ctx, base); err != nil {
		return tool.Result{}, err
	}
	switch {
	case more:
		out.note("the first %d; there are more, so use a narrower pattern", shown)
	case shown == 0:
		out.note("no file matches %s", quote(a.Pattern))
	}
	k.report(&out)
	return out.result(more), nil
}

// searched returns the directory that a call searches: its pattern may begin with
// directories.
func searched(args json.RawMessage) string {
	var a globArgs
	_ = json.Unmarshal(args, &a)
	dir, _ := split(cmp.Or(a.Path, "."), a.Pattern)
	return dir
}

// split moves the leading directories of a pattern that contain no wildcards to its
// directory, so that only possible matches are searched.
func split(dir, pattern string) (base, rest string) {
	at := strings.LastIndexByte(pattern[:firstSign(pattern)], '/')
	switch {
	case at < 0:
		return dir, pattern
	case path.IsAbs(pattern):
		return pattern[:at+1], pattern[at+1:]
	}
	return dir + "/" + pattern[:at], pattern[at+1:]
}

// firstSign returns the index of the first special character of a pattern.
func firstSign(pattern string) int {
	if at := strings.IndexAny(pattern, `*?[{\`); at >= 0 {
		return at
	}
	return len(pattern)
}

// depthOf returns how many levels a pattern can reach, 0 for any number.
func depthOf(pattern string) int {
	if strings.Contains(pattern, "**") || strings.Contains(pattern, "{") {
		return 0
	}
	return strings.Count(pattern, "/") + 1
}

func below(base, p string) string {
	if base == "." {
		return p
	}
	return strings.TrimPrefix(p, base+"/")
}
