package fs

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// format is the encoding and the line ends of a file, which the lines shown to a model
// do not reveal. Writing a file preserves it.
type format struct {
	bom bool
	// crlf reports that every line ends in CRLF, mixed that only some do.
	crlf, mixed bool
	encoding    encoding
}

type encoding int

// The encodings of a text that is not UTF-8.
const (
	// latin1 is a text without valid multi-byte UTF-8: each byte is a character of ISO
	// 8859-1, also when it is written.
	latin1 encoding = iota + 1
	// unknown is a text that is partly valid UTF-8.
	unknown
)

const bom = "\uFEFF"

// formatOf returns the format of a whole text.
func formatOf(text []byte) format {
	var s survey
	_, _ = s.Write(text)
	return s.format()
}

// String describes the format, empty for UTF-8 with plain line ends.
func (f format) String() string {
	var said []string
	switch {
	case f.encoding == latin1:
		said = append(said, "not UTF-8: shown and written as Latin-1")
	case f.encoding == unknown:
		said = append(said, "not UTF-8 throughout: what is not is shown as \uFFFD, and fs.edit keeps it")
	case f.bom:
		said = append(said, "UTF-8 with BOM")
	}
	switch {
	case f.crlf:
		said = append(said, "CRLF")
	case f.mixed:
		said = append(said, "mixed line ends: CRLF and LF")
	}
	return strings.Join(said, ", ")
}

// keep converts a new text to the format of the file that it replaces, and describes
// the format in note. An error names a character that the file's encoding cannot
// represent.
func (f format) keep(p string, text []byte) (kept []byte, note string, err error) {
	var notes []string
	if f.crlf && bytes.IndexByte(text, '\n') >= 0 && !bytes.Contains(text, []byte("\r\n")) {
		text, notes = []byte(toCRLF(string(text))), append(notes, "CRLF")
	}
	switch f.encoding {
	case latin1:
		encoded, bad := toLatin1(string(text))
		if bad != 0 {
			return nil, "", invalid("%s is kept in Latin-1, which has no %q; leave the character out, or convert the file to UTF-8 with a command first", quote(p), bad)
		}
		text, notes = []byte(encoded), append(notes, "Latin-1")
	case unknown:
		if bytes.ContainsRune(text, utf8.RuneError) {
			return nil, "", invalid("%s has bytes that are not UTF-8, which fs.read shows as %q, and writing that would destroy them; use fs.edit, which keeps them", quote(p), utf8.RuneError)
		}
	}
	if f.bom && !bytes.HasPrefix(text, []byte(bom)) {
		text, notes = append([]byte(bom), text...), append(notes, "the BOM")
	}
	if len(notes) > 0 {
		note = "; kept " + strings.Join(notes, " and ")
	}
	return text, note, nil
}

// toLatin1 encodes a text; bad is the first character that Latin-1 cannot represent.
func toLatin1(text string) (encoded string, bad rune) {
	var b strings.Builder
	for _, r := range text {
		if r > unicode.MaxLatin1 {
			return "", r
		}
		b.WriteByte(byte(r))
	}
	return b.String(), 0
}

// fromLatin1 decodes Latin-1.
func fromLatin1(text []byte) []byte {
	out := make([]byte, 0, len(text)+len(text)/8)
	for _, c := range text {
		out = utf8.AppendRune(out, rune(c))
	}
	return out
}

// survey determines the format of a text that is written in pieces.
type survey struct {
	size      int64
	start     []byte
	lf, crlf  int64
	last      byte
	rest      []byte // the beginning of a character that continues in the next piece
	invalid   bool
	multibyte bool
}

func (s *survey) Write(p []byte) (int, error) {
	n := len(p)
	if n == 0 {
		return 0, nil
	}
	s.size += int64(n)
	s.start = append(s.start, p[:min(n, len(bom)-len(s.start))]...)
	s.lines(p)
	if len(s.rest) > 0 {
		p = append(s.rest, p...)
	}
	for len(p) > 0 {
		if p[0] < utf8.RuneSelf {
			p = p[1:]
			continue
		}
		r, size := utf8.DecodeRune(p)
		switch {
		case r == utf8.RuneError && size == 1 && !utf8.FullRune(p):
			s.rest = bytes.Clone(p)
			return n, nil
		case r == utf8.RuneError && size == 1:
			s.invalid = true
		default:
			s.multibyte = true
		}
		p = p[size:]
	}
	s.rest = nil
	return n, nil
}

// lines counts the line ends of a piece.
func (s *survey) lines(p []byte) {
	s.lf += int64(bytes.Count(p, []byte("\n")))
	s.crlf += int64(bytes.Count(p, []byte("\r\n")))
	if s.last == '\r' && p[0] == '\n' {
		s.crlf++
	}
	s.last = p[len(p)-1]
}

// total returns the number of lines of the text.
func (s *survey) total() int {
	if s.size > 0 && s.last != '\n' {
		return int(s.lf) + 1
	}
	return int(s.lf)
}

func (s *survey) format() format {
	f := format{bom: string(s.start) == bom, crlf: s.crlf > 0 && s.crlf == s.lf, mixed: s.crlf > 0 && s.crlf < s.lf}
	switch invalid := s.invalid || len(s.rest) > 0; {
	case invalid && s.multibyte:
		f.encoding = unknown
	case invalid:
		f.encoding = latin1
	}
	return f
}
