package result

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/tool/internal/search"
)

const (
	// maxMatches bounds the lines that one search gives.
	maxMatches = 100
	// maxLine is how much of a matching line is shown, in bytes; lead is how
	// much of it stands before the match in a line that is longer.
	maxLine = 300
	lead    = 60
)

// search gives the lines that match from offset on, as many as limit
// characters hold, under a line that says where to go on. Of a line that is
// too long to be shown, what follows the part that is shown is searched as a
// line of its own.
func (t text) search(ctx context.Context, pattern *search.Pattern, offset, limit int) (string, error) {
	s := scan{text: t, at: t.after(0, offset), chars: offset}
	s.line = 1 + bytes.Count(t.content[:s.at], []byte{'\n'})
	var found strings.Builder
	matches, size := 0, 0
	for s.at < len(t.content) {
		m, next, ok, err := s.match(ctx, pattern)
		if err != nil {
			return "", err
		}
		if ok {
			length := utf8.RuneCountInString(m)
			if matches > 0 && (matches == maxMatches || size+length > limit) {
				break
			}
			found.WriteString(m)
			matches, size = matches+1, size+length
		}
		s.advance(next)
	}
	return fmt.Sprintf("[%d matching lines in characters %d to %d of %d; %s]\n%s",
		matches, offset, s.chars, t.total, s.rest(), found.String()), nil
}

// scan is a place in a text, counted in bytes, characters and lines.
type scan struct {
	text
	at, chars, line int
}

// match looks at the line from here on. It gives the match as it is shown and
// where the next look begins.
func (s *scan) match(ctx context.Context, pattern *search.Pattern) (shown string, next int, ok bool, err error) {
	end, next := len(s.content), len(s.content)
	if i := bytes.IndexByte(s.content[s.at:], '\n'); i >= 0 {
		end, next = s.at+i, s.at+i+1
	}
	line := bytes.TrimSuffix(s.content[s.at:end], []byte{'\r'})
	loc, err := pattern.Find(ctx, line)
	if loc == nil || err != nil {
		return "", next, false, err
	}
	place := s.chars + utf8.RuneCount(line[:loc[0]])
	if len(line) <= maxLine {
		return fmt.Sprintf("line %d, offset %d: %s\n", s.line, place, line), next, true, nil
	}
	from, to := wholeRunes(line, max(0, loc[0]-lead), min(len(line), max(0, loc[0]-lead)+maxLine))
	if to < len(line) {
		next = s.at + to
	}
	return fmt.Sprintf("line %d, offset %d: %s%s%s\n", s.line, place, ellipsis(from > 0), line[from:to], ellipsis(to < len(line))), next, true, nil
}

// advance moves to a later byte.
func (s *scan) advance(to int) {
	passed := s.content[s.at:to]
	s.chars += utf8.RuneCount(passed)
	s.line += bytes.Count(passed, []byte{'\n'})
	s.at = to
}

func (s *scan) rest() string {
	if s.at == len(s.content) {
		return "this is the end"
	}
	return fmt.Sprintf("the next offset is %d", s.chars)
}

// wholeRunes moves both ends of a window forward to where a character begins.
func wholeRunes(line []byte, from, to int) (int, int) {
	forward := func(at int) int {
		for i := 0; i < utf8.UTFMax-1 && at < len(line) && !utf8.RuneStart(line[at]); i++ {
			at++
		}
		return at
	}
	return forward(from), forward(to)
}

func ellipsis(cut bool) string {
	if cut {
		return "…"
	}
	return ""
}
