package fs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/pawlrun/pawl/tool"
)

const (
	// maxLines is how many lines one read gives when the call does not say.
	maxLines = 2000
	// maxLine is how many bytes of one line are shown.
	maxLine = 2000
	// maxEdit is the size in bytes of the largest file that is edited or
	// written. Larger ones are read in pages, but only as far as asked.
	maxEdit = 32 << 20
)

type readArgs struct {
	Path   string `json:"path" jsonschema:"path of the file, relative to the workspace"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line to read, counted from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines to read; 2000 when absent"`
}

func (w *Workspace) readTool() tool.Tool {
	t := tool.NewWithCall("fs.read", "Read a text file of the workspace. Lines come numbered; long files come in pages.", withinCall(w, w.read))
	t.Aliases = []string{"read", "read_file"}
	w.reads(&t, "read", pathOf, false)
	return t
}

func (w *Workspace) read(ctx context.Context, c tool.Call, a readArgs) (tool.Result, error) {
	switch {
	case a.Offset < 0:
		return tool.Result{}, invalid("offset is %d, and lines are counted from 1; give 1 or more, or leave it out to begin at the first", a.Offset)
	case a.Limit < 0:
		return tool.Result{}, invalid("limit is %d; give how many lines to read, or leave it out for %d", a.Limit, maxLines)
	}
	p, err := w.resolve(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	f, info, err := w.open(p, os.O_RDONLY)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()
	r := reader{name: p, size: info.Size(), from: max(a.Offset, 1), limit: a.Limit, whole: info.Size() <= maxEdit, hash: sha256.New(), redact: c.Redact}
	if r.limit <= 0 {
		r.limit = maxLines
	}
	if err := r.run(cancellable{ctx, f}); err != nil {
		return tool.Result{}, err
	}
	if r.whole {
		w.remember(p, [sha256.Size]byte(r.hash.Sum(nil)))
	}
	return r.page.result(r.more), nil
}

// reader makes one page of a file. A file that may be edited is read to its
// end, because its hash is what an edit is compared with.
type reader struct {
	name        string
	size        int64
	from, limit int
	whole       bool
	hash        hash.Hash
	redact      func(string) string

	page  page
	line  int // the last line that was read
	read  int64
	shown int
	more  bool
}

func (r *reader) run(src io.Reader) error {
	if r.whole {
		src = io.TeeReader(src, r.hash)
	}
	in := newLines(src, maxLine)
	if start, _ := in.r.Peek(sniff); isBinary(start) {
		return r.binary()
	}
	for {
		l, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return explain(r.name, err)
		}
		r.line++
		if r.read += l.size; r.read > maxEdit {
			r.whole = false
		}
		if r.more && !r.whole {
			break
		}
		if r.line < r.from || r.more {
			continue
		}
		text := l.beginning(maxLine, r.redact)
		if bytes.IndexByte(text, 0) >= 0 {
			return r.binary()
		}
		if r.more = r.shown == r.limit || !r.page.add(numbered(r.line, text, l.size)); !r.more {
			r.shown++
		}
	}
	return r.close()
}

// numbered is a line, or the beginning of one that is longer, as the model sees it.
func numbered(n int, text []byte, size int64) string {
	if int64(len(text)) < size {
		return fmt.Sprintf("%6d\t%s… [%d of the line's %d bytes]", n, text, len(text), size)
	}
	return fmt.Sprintf("%6d\t%s", n, text)
}

func (r *reader) close() error {
	switch {
	case r.line == 0:
		r.page.note("the file is empty")
	case r.shown == 0:
		return invalid("%s has %d lines; there is no line %d", quote(r.name), r.line, r.from)
	case r.more && r.whole:
		r.page.note("lines %d to %d of %d; read on with offset %d", r.from, r.from+r.shown-1, r.line, r.from+r.shown)
	case r.more:
		r.page.note("lines %d to %d of a file of %d bytes; read on with offset %d", r.from, r.from+r.shown-1, r.size, r.from+r.shown)
	}
	return nil
}

func (r *reader) binary() error {
	return invalid("%s is a binary file of %d bytes, which has no lines to read", quote(r.name), r.size)
}
