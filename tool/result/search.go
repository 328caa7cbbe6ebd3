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
	// maxMatches bounds the lines that one search returns.
	maxMatches = 100
	// maxLine bounds the bytes that are shown of a matching line; lead is how much of a
	// longer line is shown before the match.
	maxLine = 300
	lead    = 60
)

// search returns the lines from offset on that match, up to limit characters, with a
// header that says how to continue. The rest of a line that is too long to show is
// searched as a separate line.
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

// scan is a position in a text, in bytes, characters and lines.
type scan struct {
	text
	at, chars, line int
}

// match searches the current line. It returns the match as it is shown and where the
// next search begins.
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

// wholeRunes moves both ends of a window forward to the beginning of a character.
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
