package secret

import (
	"bytes"
	"strings"
)

// longestBreak bounds the length of a line break within a form: the line end, and the
// indentation and the number of the next line.
const longestBreak = 64

// begins returns the length of the form at the beginning of a text, 0 if it is not
// there; open reports that more text could extend or complete it.
func (f *form) begins(text []byte) (n int, open bool) {
	if !f.wraps {
		if bytes.HasPrefix(text, f.text) {
			return len(f.text), false
		}
		return 0, bytes.HasPrefix(f.text, text)
	}
	at := 0
	for i, c := range f.text {
		if at < len(text) && text[at] != c && i > 0 {
			n, open := lineBreak(text[at:], f.text[i:])
			if open {
				return 0, true
			}
			at += n
		}
		switch {
		case at == len(text):
			return 0, true
		case text[at] != c:
			return 0, false
		}
		at++
	}
	return at, false
}

// lineBreak returns the length of the line break at the beginning of a text, with the
// indentation and the number of the next line in the format of fs.read; line ends and
// tabs may be JSON escapes. Digits that complete the form are not a line number. It
// returns 0 for none; open reports that more text may extend it.
func lineBreak(text, left []byte) (n int, open bool) {
	for n <= longestBreak {
		rest := text[n:]
		digits := 0
		if n > 0 && !bytes.HasPrefix(rest, left) {
			digits = run(rest, "0123456789")
		}
		slashes := run(rest[digits:], `\`)
		if digits+slashes == len(rest) {
			return n, n+digits+slashes > 0
		}
		c, written := rest[digits+slashes], slashes > 0
		blank := c == '\t' && !written || c == 't' && written
		switch {
		case digits > 0 && (blank || c == ':' && !written),
			digits == 0 && (c == 'n' || c == 'r') && written,
			digits == 0 && (c == '\n' || c == '\r') && !written,
			digits == 0 && n > 0 && (blank || c == ' ' && !written):
			n += digits + slashes + 1
		default:
			return n, false
		}
	}
	return 0, false
}

// run returns how many of some characters a text begins with, up to one more than a
// break may have.
func run(text []byte, of string) int {
	n := 0
	for n < len(text) && n <= longestBreak && strings.IndexByte(of, text[n]) >= 0 {
		n++
	}
	return n
}
