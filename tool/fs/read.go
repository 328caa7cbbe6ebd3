package fs

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

const (
	// maxLines is the default number of lines of one read.
	maxLines = 2000
	// maxLine bounds the bytes that are shown of a line.
	maxLine = 2000
	// maxEdit is the maximum size in bytes of a file that is edited or written. Larger
	// ones are read in pages, but only as far as requested.
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
	content, size, err := w.shown(ctx, p, f, info.Size())
	if err != nil {
		return tool.Result{}, err
	}
	src := cancellable{ctx, content}
	whole, err := w.readForEdit(p, src, size)
	if err != nil {
		return tool.Result{}, err
	}
	r := reader{name: p, size: size, from: max(a.Offset, 1), limit: a.Limit, redact: c.Redact}
	if whole != nil {
		r.total, r.format = whole.total(), whole.format()
		if _, err := content.Seek(0, io.SeekStart); err != nil {
			return tool.Result{}, explain(p, err)
		}
	}
	if r.limit <= 0 {
		r.limit = maxLines
	}
	if err := r.run(src); err != nil {
		return tool.Result{}, err
	}
	_, known := seen(c, p)
	if kept := r.format.String(); kept != "" && (r.from == 1 || !known) {
		r.page.note("%s", kept)
	}
	result := r.page.result(r.more)
	if whole != nil {
		result.Files = []event.FileSeen{{Path: p, Digest: whole.digest}}
	}
	return result, nil
}

// shown returns what a file contains, and its size: the text of a buffer if there is one.
func (w *Workspace) shown(ctx context.Context, p string, f *os.File, size int64) (io.ReadSeeker, int64, error) {
	if w.buffers == nil || size > maxEdit {
		return f, size, nil
	}
	disk, err := load(ctx, p, f, maxEdit)
	if err != nil {
		return nil, 0, err
	}
	text, held := w.buffered(ctx, p, disk)
	if !held {
		text = disk
	}
	return bytes.NewReader(text), int64(len(text)), nil
}

// wholeFile is a file that was read to its end.
type wholeFile struct {
	survey
	digest string
}

// readForEdit reads a file that may be edited to its end, because an edit is compared
// with its digest; it returns nil for a larger one. It keeps the content of a small one,
// see [contents]. The caller handles a binary file.
func (w *Workspace) readForEdit(p string, src io.Reader, size int64) (*wholeFile, error) {
	if size > maxEdit {
		return nil, nil
	}
	l, hash := wholeFile{}, sha256.New()
	to := []io.Writer{&l.survey, hash}
	var content bytes.Buffer
	if size <= maxKept {
		to = append(to, &content)
	}
	n, err := io.Copy(io.MultiWriter(to...), io.LimitReader(src, maxEdit+1))
	if err != nil {
		return nil, explain(p, err)
	}
	if n > maxEdit {
		return nil, nil
	}
	l.digest = digestOf([sha256.Size]byte(hash.Sum(nil)))
	if size <= maxKept {
		w.contents.keep(l.digest, content.Bytes())
	}
	return &l, nil
}

// reader makes one page of a file.
type reader struct {
	name        string
	size        int64
	from, limit int
	// total is the number of lines, 0 if the file was not read to its end; format is
	// known only if it was.
	total  int
	format format
	redact func(string) string

	page  page
	line  int // the last line that was read
	shown int
	more  bool
}

func (r *reader) run(src io.Reader) error {
	in := &lines{r: bufio.NewReaderSize(src, 64<<10), limit: maxLine}
	if start, _ := in.r.Peek(sniff); isBinary(start) {
		return r.binary()
	} else if bytes.HasPrefix(start, []byte(bom)) {
		_, _ = in.r.Discard(len(bom))
	}
	for !r.more {
		l, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return explain(r.name, err)
		}
		if r.line++; r.line < r.from {
			continue
		}
		text := l.beginning(maxLine, r.redact)
		if bytes.IndexByte(text, 0) >= 0 {
			return r.binary()
		}
		if r.more = r.shown == r.limit || !r.page.add(r.numbered(text, l.size)); !r.more {
			r.shown++
		}
	}
	return r.close()
}

// numbered returns the current line, or the beginning of a longer one, as the model
// sees it.
func (r *reader) numbered(text []byte, size int64) string {
	length := len(text)
	if r.format.encoding == latin1 {
		text = fromLatin1(text)
	}
	if int64(length) < size {
		return fmt.Sprintf("%6d\t%s… [%d of the line's %d bytes]", r.line, text, length, size)
	}
	return fmt.Sprintf("%6d\t%s", r.line, text)
}

func (r *reader) close() error {
	switch {
	case r.line == 0:
		r.page.note("the file is empty")
	case r.shown == 0:
		return invalid("%s has %d lines; there is no line %d", quote(r.name), r.line, r.from)
	case r.more && r.total > 0:
		r.page.note("lines %d to %d of %d; read on with offset %d", r.from, r.from+r.shown-1, r.total, r.from+r.shown)
	case r.more:
		r.page.note("lines %d to %d of a file of %d bytes; read on with offset %d", r.from, r.from+r.shown-1, r.size, r.from+r.shown)
	}
	return nil
}

func (r *reader) binary() error {
	return invalid("%s is a binary file of %d bytes, which has no lines to read", quote(r.name), r.size)
}
