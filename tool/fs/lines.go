package fs

import (
	"bufio"
	"errors"
	"io"
	"unicode/utf8"
)

// lines reads a text line by line and keeps at most limit bytes of each, so
// that a line of a gigabyte costs no more memory than a short one.
type lines struct {
	r     *bufio.Reader
	limit int
	// redact, where there is one, takes secrets out of a line before it is cut:
	// nobody would know half of one any more.
	redact func(string) string
	buf    []byte
}

// ahead is how many bytes behind the limit are looked at for a secret that
// begins before it.
const ahead = 16 << 10

func newLines(r io.Reader, limit int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// line is one line without its end. Text is valid until the next call.
type line struct {
	text []byte
	// size is the length of the whole line in bytes.
	size int64
}

func (l line) cut() bool { return l.size > int64(len(l.text)) }

// next returns the next line, or io.EOF after the last one.
func (l *lines) next() (line, error) {
	l.buf = l.buf[:0]
	var size int64
	for {
		part, err := l.r.ReadSlice('\n')
		size += int64(len(part))
		l.buf = append(l.buf, part[:min(len(part), max(0, l.limit+ahead-len(l.buf)))]...)
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

// end takes the line's end off, which size does not count any more, and cuts
// what is kept between characters.
func (l *lines) end(size int64) line {
	text := l.buf[:min(int64(len(l.buf)), size)]
	if n := len(text); int64(n) == size && n > 0 && text[n-1] == '\r' {
		text, size = text[:n-1], size-1
	}
	if len(text) > l.limit {
		if l.redact != nil {
			whole := int64(len(text)) == size
			if text = []byte(l.redact(string(text))); whole {
				size = int64(len(text))
			}
		}
		text = text[:min(len(text), l.limit)]
		for range utf8.UTFMax - 1 {
			if r, n := utf8.DecodeLastRune(text); r != utf8.RuneError || n != 1 {
				break
			}
			text = text[:len(text)-1]
		}
	}
	return line{text: text, size: size}
}
