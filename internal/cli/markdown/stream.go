package markdown

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark/text"
)

// longest bounds a block. The rest of a longer block is shown as it is, because
// parsing some texts takes quadratic time.
const longest = 32 << 10

// Writer lays out a text that arrives in pieces. It returns a line once, when no
// later piece can change it.
type Writer struct {
	// Width is called when a block starts.
	Width  func() int
	Colour bool

	// source is the text from the start of the open block, given the number of its
	// lines that were returned, and width the width of their layout.
	source string
	given  int
	width  int
	// began reports that there were blocks before, and gap that there was an empty
	// line.
	began, gap bool
	// asIs reports that the text is shown as it is; before holds lines that are not
	// returned yet.
	asIs   bool
	before []string
}

// Add adds the next piece.
func (s *Writer) Add(piece string) {
	if !s.asIs && len(s.source)+len(piece) > longest {
		if s.before = s.rest(); strings.HasSuffix(s.source, "\n\n") {
			s.before = append(s.before, "")
		}
		s.source, s.asIs = "", true
	}
	s.source += piece
}

// Next returns the lines that have become settled, and the last line, which has
// not.
func (s *Writer) Next() (settled []string, partial string) {
	if s.asIs || !s.began && s.given == 0 && isData(s.source) {
		s.asIs = true
		return s.nextAsIs()
	}
	whole, begun := undecided(s.source)
	l := s.layout(whole)
	until := l.settled(whole)
	settled = s.take(l, until)
	switch {
	case strings.TrimSpace(begun) != "" && (whole == "" || strings.HasSuffix(whole, "\n")):
		partial = harmless(begun)
	case until < len(l.lines)-l.fence:
		partial = l.lines[len(l.lines)-l.fence-1].text
	}
	s.cut(l, begun)
	return settled, partial
}

// Close returns the rest. A new text may follow.
func (s *Writer) Close() []string {
	lines, _ := s.Next()
	lines = append(lines, s.rest()...)
	*s = Writer{Width: s.Width, Colour: s.Colour}
	return lines
}

func (s *Writer) rest() []string {
	if s.asIs {
		if s.source == "" {
			return nil
		}
		return []string{harmless(s.source)}
	}
	l := s.layout(s.source)
	return s.take(l, len(l.lines))
}

func (s *Writer) nextAsIs() (lines []string, partial string) {
	lines, s.before = s.before, nil
	at := strings.LastIndexByte(s.source, '\n') + 1
	for line := range strings.Lines(s.source[:at]) {
		lines = append(lines, harmless(strings.TrimRight(line, "\r\n")))
	}
	s.source = s.source[at:]
	return lines, harmless(s.source)
}

// isData reports whether a text is data: Markdown would remove the backslashes from
// JSON.
func isData(source string) bool { return strings.HasPrefix(strings.TrimSpace(source), "{") }

var (
	// noBlockYet matches the start of a line whose kind of block is still unknown.
	noBlockYet = regexp.MustCompile("^[-+*_>#~`.)=|0-9 \t]*$")
	// mark lists characters that may be the first part of a mark.
	mark = "`*_~[]()!\\&<"
)

// undecided splits off the end of a text that cannot be interpreted before more
// text arrives.
func undecided(source string) (whole, begun string) {
	at := strings.LastIndexByte(source, '\n') + 1
	if !noBlockYet.MatchString(source[at:]) {
		at = len(strings.TrimRight(source, mark))
	}
	return source[:at], source[at:]
}

func (s *Writer) layout(source string) *layout {
	gap := s.began && s.gap
	if s.given == 0 || s.given == 1 && gap { // no line with text was returned yet
		s.width = max(s.Width(), narrowest)
	}
	source = strings.ReplaceAll(source, "\r\n", "\n")
	l := &layout{source: []byte(source), width: s.width, colour: s.Colour, gap: gap, begun: s.began}
	l.document(newParser().Parse(text.NewReader([]byte(source))))
	return l
}

func (s *Writer) take(l *layout, until int) []string {
	var lines []string
	for ; s.given < until; s.given++ {
		lines = append(lines, l.lines[s.given].text)
	}
	return lines
}

// cut drops complete blocks, so that a long text is not parsed again for each
// piece.
func (s *Writer) cut(l *layout, begun string) {
	if l.last.line == 0 || l.last.at < 0 || s.given < l.last.line {
		return
	}
	from := strings.LastIndexByte(string(l.source[:l.last.at]), '\n') + 1
	s.source = string(l.source[from:]) + begun
	s.given -= l.last.line
	s.began, s.gap = true, l.last.gap
}
