package fs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/tool"
)

// lines reads a text line by line. It keeps only as much of each line as showing limit
// bytes needs, so that a line of a gigabyte needs no more memory than a short one.
type lines struct {
	r     *bufio.Reader
	limit int
	buf   []byte
}

// line is one line without its end. Text is valid until the next call.
type line struct {
	// text is the original beginning of the line.
	text []byte
	// size is the length of the whole line in bytes.
	size int64
}

// beginning returns at most limit bytes of a line. It cuts between characters, and not
// within anything that redact, which may be nil, removes.
func (l line) beginning(limit int, redact func(string) string) []byte {
	if len(l.text) <= limit {
		return l.text
	}
	text := l.text[:tool.SafeEnd(string(l.text), limit, redact)]
	for range utf8.UTFMax - 1 {
		if r, n := utf8.DecodeLastRune(text); r != utf8.RuneError || n != 1 {
			break
		}
		text = text[:len(text)-1]
	}
	return text
}

// next returns the next line, or io.EOF after the last one.
func (l *lines) next() (line, error) {
	l.buf = l.buf[:0]
	var size int64
	for {
		part, err := l.r.ReadSlice('\n')
		size += int64(len(part))
		l.buf = append(l.buf, part[:min(len(part), max(0, l.limit+tool.Seam-len(l.buf)))]...)
		switch {
		case err == nil:
			return l.end(size - 1), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && size > 0:
			return l.end(size), nil
		default:
			return line{}, err
		}
	}
}

// end removes the line end; size then excludes it.
func (l *lines) end(size int64) line {
	text := l.buf[:min(int64(len(l.buf)), size)]
	if n := len(text); int64(n) == size && n > 0 && text[n-1] == '\r' {
		text, size = text[:n-1], size-1
	}
	return line{text: text, size: size}
}

// maxPage bounds the bytes that one call returns. It is below the 30,000 characters of
// a result that a model sees, so that a page is never cut; the page itself says how to
// continue.
const maxPage = 28_000

// page collects the lines of a result up to maxPage.
type page struct {
	b strings.Builder
}

// add appends a line and reports whether there was room for it.
func (p *page) add(line string) bool {
	if p.b.Len() > 0 && p.b.Len()+len(line) >= maxPage {
		return false
	}
	p.b.WriteString(strings.ToValidUTF8(line, "\uFFFD"))
	p.b.WriteByte('\n')
	return true
}

// note appends a remark of the tool, even if the page is full.
func (p *page) note(format string, args ...any) {
	fmt.Fprintf(&p.b, "["+format+"]\n", args...)
}

func (p *page) result(truncated bool) tool.Result {
	return tool.Result{Output: p.b.String(), Truncated: truncated}
}
