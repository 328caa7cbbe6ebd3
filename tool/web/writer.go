package web

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// writer builds the text of a page.
type writer struct {
	b    longText
	base *url.URL
	// full says that there was more than the text's limit.
	full bool
	// lines are the line breaks that are due before the next text, space says
	// that a space is.
	lines int
	space bool
	// mark stands before the next text.
	mark string
	// links are those that are open, the innermost one last.
	links []link
}

// link is a link whose end has not come.
type link struct {
	href string
	// shown says that something of it was written, to where it leads: empty
	// for what is not fetched.
	shown bool
	to    string
}

// breakLine asks for line breaks before the next text.
func (w *writer) breakLine(lines int) { w.lines = max(w.lines, lines) }

// text writes what a page shows, with white space as HTML takes it, or as it
// stands.
func (w *writer) text(s string, verbatim bool) {
	s = strings.Map(visible, s)
	if verbatim {
		w.raw(s)
		return
	}
	if s == "" {
		return
	}
	first, _ := utf8.DecodeRuneInString(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	w.space = w.space || unicode.IsSpace(first)
	wrote := false
	for word := range strings.FieldsSeq(s) {
		w.raw(word)
		w.space, wrote = true, true
	}
	if wrote {
		w.space = unicode.IsSpace(last)
	}
}

// raw writes a piece of text behind the breaks that are due, or as much of it
// as there is room for.
func (w *writer) raw(s string) {
	if w.full || s == "" {
		return
	}
	brackets := w.brackets()
	if room := w.b.left() - min(w.lines, 2) - len(w.mark) - brackets - len(" "); len(s) > room {
		s, w.full = string(wholeRunes([]byte(s[:max(room, 0)]))), true
		if s == "" {
			return
		}
	}
	if w.b.Len() > 0 {
		switch {
		case w.lines > 0:
			w.b.WriteString("\n\n"[:min(w.lines, 2)])
		case w.space:
			w.b.WriteByte(' ')
		}
	}
	w.b.WriteString(w.mark)
	for range brackets {
		w.b.WriteByte('[')
	}
	w.b.WriteString(s)
	w.b.grown()
	w.lines, w.space, w.mark = 0, false, ""
}

// brackets is how many links begin with what is about to be written.
func (w *writer) brackets() int {
	n := 0
	for i := len(w.links) - 1; i >= 0 && !w.links[i].shown; i-- {
		w.links[i].shown, w.links[i].to = true, w.address(w.links[i].href)
		if w.links[i].to != "" {
			n++
		}
	}
	return n
}

func (w *writer) beginLink(href string) { w.links = append(w.links, link{href: href}) }

// endLink writes where a link leads, as Markdown does; one that shows nothing, or
// leads to nothing that is fetched, is its text alone.
func (w *writer) endLink() {
	last := w.links[len(w.links)-1]
	w.links = w.links[:len(w.links)-1]
	if w.full || last.to == "" {
		return
	}
	if end := "](" + last.to + ")"; len(end) <= w.b.left() {
		w.b.WriteString(end)
	} else {
		w.full = true
	}
}

// address is where a link leads, empty for what is not fetched.
func (w *writer) address(href string) string {
	if href = strings.TrimSpace(href); href == "" || strings.HasPrefix(href, "#") {
		return ""
	}
	u, err := w.base.Parse(href)
	if err != nil {
		return ""
	}
	t, err := check(u)
	if err != nil {
		return ""
	}
	return t.url.String()
}

// visible drops characters that nobody sees and that can carry text all the
// same, or turn it around.
func visible(r rune) rune {
	switch {
	case r >= 0xE0000 && r <= 0xE0FFF, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r == 0x200B, r == 0x2060, r == 0xFEFF, r == 0xAD:
		return -1
	case unicode.IsControl(r) && r != '\n' && r != '\t':
		return ' '
	}
	return r
}
