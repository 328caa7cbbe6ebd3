package decode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxFile bounds the size of a file, so that a wrong path does not exhaust the memory.
const maxFile = 1 << 20

// Read parses a file's text to a tree of nodes. If that fails, it reports the reason
// and returns nil.
func (r *Report) Read(data []byte, example string) *yaml.Node {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch {
	case len(data) > maxFile:
		r.Fail(start(), "", "at most 1 MiB", "the file has %d bytes", len(data))
		return nil
	case !utf8.Valid(data):
		r.Fail(placeOf(data, invalidAt(data)), "", "a text in UTF-8", "the file is not UTF-8")
		return nil
	case strings.EqualFold(filepath.Ext(r.File), ".json"):
		return r.ReadJSON(data)
	}
	return r.readYAML(data, example)
}

func (r *Report) readYAML(data []byte, example string) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		r.syntax(data, err)
		return nil
	}
	if len(doc.Content) == 0 || IsNull(doc.Content[0]) {
		r.Fail(start(), "", example, "the file is empty")
		return nil
	}
	switch err := dec.Decode(&next); {
	case err == nil:
		r.Fail(&next, "", "one document", "a second document begins here; --- and ... separate documents")
		return nil
	case !errors.Is(err, io.EOF):
		r.syntax(data, err)
		return nil
	}
	return doc.Content[0]
}

// syntax reports an error of the YAML reader at its place.
func (r *Report) syntax(data []byte, err error) {
	n := start()
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		message = e.Message
		if e.ContextMsg != "" {
			message = e.ContextMsg + ": " + message
		}
		switch {
		case e.Mark.Line > 0:
			n.Line, n.Column = e.Mark.Line, max(e.Mark.Column, 1)
		default:
			n = placeOf(data, bytes.IndexFunc(data, isControl))
		}
	}
	if tabIndents(data, n.Line) {
		r.Fail(n, "", "spaces", "a tab is used for indentation")
		return
	}
	r.Fail(n, "", "valid YAML", "%s", message)
}

func isControl(c rune) bool { return c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f }

func tabIndents(data []byte, line int) bool {
	lines := bytes.SplitN(data, []byte("\n"), line+1)
	if line < 1 || line > len(lines) {
		return false
	}
	text := lines[line-1]
	indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
	return bytes.IndexByte(indent, '\t') >= 0
}

func start() *yaml.Node { return &yaml.Node{Line: 1, Column: 1} }

// placeOf turns an offset into a line and a column.
func placeOf(data []byte, offset int) *yaml.Node {
	return PlacesIn(data).At(offset)
}

// Places turns rising offsets into lines and columns, in one pass over the data.
type Places struct {
	data                 []byte
	offset, line, column int
}

// PlacesIn returns Places at the first character of a text.
func PlacesIn(data []byte) *Places { return &Places{data: data, line: 1, column: 1} }

// At returns the place of an offset, which must not be before the previous one. A line
// ends where YAML ends it, which includes a lone carriage return.
func (p *Places) At(offset int) *yaml.Node {
	for p.offset < min(offset, len(p.data)) {
		c, size := utf8.DecodeRune(p.data[p.offset:])
		p.offset += size
		switch {
		case c == '\r' && bytes.HasPrefix(p.data[p.offset:], []byte("\n")):
		case strings.ContainsRune("\n\r\u0085\u2028\u2029", c):
			p.line, p.column = p.line+1, 1
		default:
			p.column++
		}
	}
	return &yaml.Node{Line: p.line, Column: p.column}
}

func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		if c == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return 0
}

// IsNull reports whether a node is empty or null.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// ReadFile reads a text file of a bounded size. The bound also applies to devices and
// pipes, which have no size.
func ReadFile(path string) ([]byte, error) { return ReadUpTo(path, maxFile) }

// ReadUpTo is [ReadFile] with another bound.
func ReadUpTo(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory", path)
	case info.Size() > most:
		return nil, fmt.Errorf("%s has %d bytes; at most %d MiB is read", path, info.Size(), most>>20)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s is larger than %d MiB, the most that is read", path, most>>20)
	}
	return text, err
}
