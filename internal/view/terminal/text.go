// Package terminal knows what a text is on a terminal: which characters would
// steer it, and how much room the others take.
package terminal

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Harmless shows what could steer a terminal, such as ⟨U+202E⟩: text of models and
// tools is data, and must not move the cursor, change colors, reorder what is read or
// hide in invisible characters. Line ends and tabs stay, and what joins letters and
// pictures beyond ASCII.
func Harmless(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	before := rune(0)
	for i, r := range s {
		switch {
		case !hidden(r), joins(r) && before > unicode.MaxASCII:
			b.WriteRune(r)
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		default:
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		}
		before = r
	}
	return b.String()
}

// hidden reports whether a terminal does not show a character as one.
func hidden(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < unicode.MaxASCII:
		return r < ' '
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector):
		return true
	}
	switch r {
	case '\u034f', '\u115f', '\u1160', '\u2800', '\u3164', '\uffa0': // letters and marks without a shape
		return true
	}
	return false
}

// joins reports whether a hidden character changes how the one before it is drawn.
func joins(r rune) bool {
	return r == '\u200c' || r == '\u200d' || unicode.Is(unicode.Variation_Selector, r)
}

// maxSpaces is how many spaces in a row are seen as what they are.
const maxSpaces = 8

// Marked is [Harmless] for what a person decides about: behind more than eight spaces
// in a line there may be text that is not seen, so that their number stands in their
// place. Those at the beginning of a line stay.
func Marked(s string) string {
	s = Harmless(s)
	if !strings.Contains(s, strings.Repeat(" ", maxSpaces+1)) {
		return s
	}
	var b strings.Builder
	for line := range strings.Lines(s) {
		text := strings.TrimLeft(line, " ")
		b.WriteString(line[:len(line)-len(text)])
		for text != "" {
			at := strings.IndexByte(text, ' ')
			if at < 0 {
				at = len(text)
			}
			rest := strings.TrimLeft(text[at:], " ")
			b.WriteString(text[:at])
			if n := len(text) - at - len(rest); n > maxSpaces {
				fmt.Fprintf(&b, "⟨%d spaces⟩", n)
			} else {
				b.WriteString(text[at : at+n])
			}
			text = rest
		}
	}
	return b.String()
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

// FirstLine is the first line of a text, cut to a width for progress lines.
func FirstLine(s string, width int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return Clip(strings.ReplaceAll(Harmless(s), "\t", " "), width)
}

// Clip cuts a text to a number of columns and marks the cut.
func Clip(s string, width int) string {
	if width < 1 || Columns(s) <= width {
		return s
	}
	room := width - Columns("…")
	for i, r := range s {
		if room -= ColumnsOf(r); room < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
