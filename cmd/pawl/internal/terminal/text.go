// Package terminal knows what a text is on a terminal: which characters would
// steer it, and how much room the others take.
package terminal

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Harmless replaces what could steer a terminal: text of models and tools is
// data, and must not move the cursor, change colours, reorder what is read or
// hide in characters that nobody sees. Line breaks and tabs stay, and what joins
// letters and pictures.
func Harmless(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u200c', r == '\u200d':
			return r
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			return '\uFFFD'
		}
		return r
	}, s)
}

// Columns is how much room a text takes on a terminal. What joins onto the
// character before it is counted too: a line that is cut too soon is read, and
// one that is too long breaks.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += ColumnsOf(r)
	}
	return n
}

// ColumnsOf is two for the letters of East Asia and for pictures.
func ColumnsOf(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
