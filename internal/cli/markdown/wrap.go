package markdown

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl/internal/view/terminal"
)

// prose adds text in lines that fit.
func (l *layout) prose(text []glyph) {
	for {
		at := end(text)
		l.wrapped(text[:at])
		if at == len(text) {
			return
		}
		text = text[at+1:]
	}
}

// end returns the end of the first line that the writer of a text broke.
func end(text []glyph) int {
	for i, g := range text {
		if g.r == '\n' {
			return i
		}
	}
	return len(text)
}

func (l *layout) wrapped(text []glyph) {
	for room := l.room(); ; {
		at, next := fill(text, room)
		l.add(line{text: l.painted(text[:at]), open: open(text[:at])})
		if next == len(text) {
			return
		}
		text = text[next:]
	}
}

// fill returns how much of a text fits on a line, and where the next line starts. A
// word that is longer than a line stays whole, so that an address can be copied.
func fill(text []glyph, room int) (until, next int) {
	for i, g := range text {
		if i > 0 && breaks(text[i-1].r, g.r) {
			until = i
		}
		if room -= terminal.ColumnsOf(g.r); room >= 0 {
			continue
		}
		if g.r == ' ' {
			until = i
		}
		if until == 0 {
			continue
		}
		next = until
		for next < len(text) && text[next].r == ' ' {
			next++
		}
		return trimmed(text, until), next
	}
	return trimmed(text, len(text)), len(text)
}

// breaks reports whether a line may end between two characters.
func breaks(before, after rune) bool {
	if before == ' ' {
		return after != ' '
	}
	wide := terminal.ColumnsOf(before) == 2 || terminal.ColumnsOf(after) == 2
	return wide && after != ' ' && after != '\u200d' && before != '\u200d' && !unicode.In(after, unicode.M, unicode.P)
}

func trimmed(text []glyph, until int) int {
	for until > 0 && text[until-1].r == ' ' {
		until--
	}
	return until
}

// painted returns a line's text with its styles, which end with the line.
func (l *layout) painted(text []glyph) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		from := i
		for i < len(text) && text[i].st == text[from].st {
			i++
		}
		b.WriteString(l.paint(text[from].st, textOf(text[from:i])))
	}
	return b.String()
}

// columnsPainted returns the columns that a painted text occupies.
func columnsPainted(text string) int { return terminal.Columns(painting.ReplaceAllString(text, "")) }

var painting = regexp.MustCompile("\x1b\\[[0-9;]*m")
