package expr

import "strings"

// withStepNames lets steps.ID and steps["ID"] mean the same, whatever an id is made
// of: the language itself takes the hyphen of steps.list-services for a minus, which
// no step has. It gives the expression with such ids in backticks, and where each of
// them made the text longer.
func withStepNames(text string) (string, []shift) {
	var b strings.Builder
	var shifts []shift
	s := scanner{text: text}
	for s.at < len(text) {
		from := s.at
		word := s.skip()
		b.WriteString(text[from:s.at])
		if word != "steps" || s.field {
			continue
		}
		id, length := stepName(text[s.at:])
		if id == "" {
			continue
		}
		b.WriteString(".`" + id + "`")
		s.at += length
		shifts = append(shifts, shift{at: b.Len(), by: len(id) + 3 - length})
	}
	return b.String(), shifts
}

// shift is by how much a text is longer from an offset on.
type shift struct{ at, by int }

// original turns an offset in the longer text into one in the text that was written.
func original(offset int, shifts []shift) int {
	for i := len(shifts) - 1; i >= 0; i-- {
		if offset >= shifts[i].at {
			offset -= shifts[i].by
		}
	}
	return offset
}

// stepName is the id that follows "steps", and how long the text is that says it.
func stepName(rest string) (id string, length int) {
	at := spaces(rest, 0)
	switch {
	case at == len(rest):
		return "", 0
	case rest[at] == '.':
		from := spaces(rest, at+1)
		to := from
		for to < len(rest) && (isWord(rest[to]) || rest[to] == '-' && to > from) {
			to++
		}
		if next := spaces(rest, to); to == from || next < len(rest) && rest[next] == '(' {
			return "", 0 // a method, as steps.size()
		}
		return rest[from:to], to
	case rest[at] == '[':
		from := spaces(rest, at+1)
		if from == len(rest) || rest[from] != '"' && rest[from] != '\'' {
			return "", 0
		}
		to := from + 1
		for to < len(rest) && (isWord(rest[to]) || rest[to] == '-') {
			to++
		}
		if to == len(rest) || rest[to] != rest[from] || to == from+1 {
			return "", 0
		}
		if end := spaces(rest, to+1); end < len(rest) && rest[end] == ']' {
			return rest[from+1 : to], end + 1
		}
	}
	return "", 0
}

// scanner goes through an expression by words, quoted texts and single characters.
type scanner struct {
	text string
	at   int
	// field says that the last word stood behind a dot, dotted that a dot was last.
	field, dotted bool
}

// skip moves behind the next word, text or character, and gives the word.
func (s *scanner) skip() string {
	from, c := s.at, s.text[s.at]
	switch {
	case isWord(c):
		for s.at < len(s.text) && isWord(s.text[s.at]) {
			s.at++
		}
		s.field, s.dotted = s.dotted, false
		word := s.text[from:s.at]
		if s.at < len(s.text) && (s.text[s.at] == '"' || s.text[s.at] == '\'') && isPrefix(word) {
			s.quoted(strings.ContainsAny(word, "rR"))
			return ""
		}
		return word
	case c == '"' || c == '\'':
		s.quoted(false)
	case c == '`':
		s.to("`", s.at+1)
	case strings.HasPrefix(s.text[s.at:], "//"):
		s.to("\n", s.at)
	default:
		s.at++
		if c == '.' {
			s.dotted = true
		} else if !isSpace(c) {
			s.dotted = false
		}
		return ""
	}
	s.dotted = false
	return ""
}

// quoted moves behind a text in quotes, single or triple.
func (s *scanner) quoted(raw bool) {
	quote := s.text[s.at : s.at+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s.text[s.at:], triple) {
		quote = triple
	}
	for at := s.at + len(quote); at < len(s.text); at++ {
		switch {
		case strings.HasPrefix(s.text[at:], quote):
			s.at = at + len(quote)
			return
		case s.text[at] == '\\' && !raw:
			at++
		}
	}
	s.at = len(s.text)
}

// to moves behind the next place of a mark.
func (s *scanner) to(mark string, from int) {
	if i := strings.Index(s.text[from:], mark); i >= 0 {
		s.at = from + i + len(mark)
		return
	}
	s.at = len(s.text)
}

func spaces(text string, at int) int {
	for at < len(text) && isSpace(text[at]) {
		at++
	}
	return at
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// isPrefix reports whether a word before a quote belongs to the text.
func isPrefix(word string) bool {
	switch strings.ToLower(word) {
	case "r", "b", "br", "rb":
		return true
	}
	return false
}
