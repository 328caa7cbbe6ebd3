package secret

import (
	"bytes"
	"strings"
)

// longestBreak bounds what may stand between two lines of a form: the end of the
// one, and the indentation and the number of the other.
const longestBreak = 64

// begins says how much of a text a form takes up that it begins with, 0 where
// it does not; open says that it may, or may take up more, if more text follows.
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

// lineBreak is how long the end of a line is that a text begins with, with the
// indentation and the number of the next one, as fs.read gives it; ends and tabs may
// be written as JSON writes them. Digits that are all that is left of a form are no
// number. It is 0 for none; open says that more text may make it a longer one.
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

// run is how many of some characters a text begins with, up to one more than a
// break may have.
func run(text []byte, of string) int {
	n := 0
	for n < len(text) && n <= longestBreak && strings.IndexByte(of, text[n]) >= 0 {
		n++
	}
	return n
}
