package fs

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// maxLines is how many lines one read gives when the call does not say.
const maxLines = 2000

type readArgs struct {
	Path   string `json:"path" jsonschema:"path of the file, relative to the workspace"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line to read, counted from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines to read; 2000 when absent"`
}

func (w *Workspace) readTool() tool.Tool {
	t := tool.New("fs.read", "Read a text file of the workspace. Lines come numbered; long files come in pages.",
		func(_ context.Context, a readArgs) (tool.Result, error) { return w.read(a) })
	t.Effect, t.ReadOnly, t.Concurrent = event.EffectPure, true, true
	t.Access, t.Describe = w.access(false), describe("read")
	return t
}

func (w *Workspace) read(a readArgs) (tool.Result, error) {
	p, err := w.local(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	data, err := w.readFile(p)
	if err != nil {
		return tool.Result{}, err
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return tool.Result{}, fmt.Errorf("%s is a binary file of %d bytes", p, len(data))
	}
	w.remember(p, data)
	lines := strings.SplitAfter(string(data), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	from := max(a.Offset, 1) - 1
	limit := a.Limit
	if limit <= 0 {
		limit = maxLines
	}
	if from >= len(lines) && len(lines) > 0 {
		return tool.Result{}, fmt.Errorf("%s has %d lines; there is no line %d", p, len(lines), a.Offset)
	}
	to := min(from+limit, len(lines))
	var b strings.Builder
	for i, line := range lines[from:to] {
		fmt.Fprintf(&b, "%6d\t%s", from+i+1, line)
	}
	if to < len(lines) {
		fmt.Fprintf(&b, "[lines %d to %d of %d; read on with offset %d]\n", from+1, to, len(lines), to+1)
	}
	return tool.Result{Output: b.String(), Truncated: to < len(lines)}, nil
}
