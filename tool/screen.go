package tool

import (
	"strings"
	"unicode/utf8"
)

// Screen returns the text that a terminal would show for a program's output, and how
// many lines later output replaced (frames of progress bars and spinners). It applies
// carriage returns, backspaces and cursor movements, and removes colors, titles, links
// and all other escape sequences. A screen that the program clears stays in the text,
// because a terminal keeps it above. Output without any of these is returned unchanged.
func Screen(output string) (shown string, overwritten int) {
	if !drawn(output) {
		return output, 0
	}
	var s screen
	for rest := output; rest != ""; {
		plain := strings.IndexAny(rest, "\n\r\b\x1b")
		if plain < 0 {
			plain = len(rest)
		}
		s.print(rest[:plain])
		if rest = rest[plain:]; rest != "" {
			rest = rest[s.control(rest):]
		}
	}
	return s.text(), s.overwritten
}

// drawn reports whether a terminal would show a text differently.
func drawn(output string) bool {
	if strings.ContainsAny(output, "\b\x1b") {
		return true
	}
	for rest := output; ; {
		at := strings.IndexByte(rest, '\r')
		if at < 0 {
			return false
		}
		if rest = rest[at+1:]; !strings.HasPrefix(rest, "\n") {
			return true
		}
	}
}

// screen is a terminal of unlimited height. It holds the line of the cursor as
// characters and the others as text.
type screen struct {
	lines []string
	// ends holds the line ends as received: "\n" or "\r\n".
	ends        []string
	row, column int
	line        []rune
	overwritten int
	// replacing is set while the text of a line is being replaced, so that the line is
	// counted once.
	replacing bool
	// padding is the number of spaces that movements to the right have added, and
	// effort the number of characters that other movements have copied. Both are
	// bounded, so that the work is proportional to the length of the output.
	padding, effort int
}

const (
	maxPadding = 1 << 16
	maxEffort  = 1 << 26
	// maxMove bounds how far one sequence moves the cursor.
	maxMove = 500
)

func (s *screen) print(text string) {
	if text == "" {
		return
	}
	if s.column < len(s.line) && !s.replacing {
		s.replacing = true
		s.overwritten++
	}
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		s.pad()
		if s.column < len(s.line) {
			s.line[s.column] = r
		} else {
			s.line = append(s.line, r)
		}
		s.column++
	}
}

// pad fills the line with spaces up to the cursor.
func (s *screen) pad() {
	for len(s.line) < s.column && s.padding < maxPadding {
		s.line = append(s.line, ' ')
		s.padding++
	}
	s.column = min(s.column, len(s.line))
}

// control applies the control character or sequence at the beginning of a text, and
// returns its length.
func (s *screen) control(text string) int {
	switch text[0] {
	case '\n':
		s.newline("\n")
	case '\r':
		if strings.HasPrefix(text, "\r\n") {
			s.newline("\r\n")
			return 2
		}
		s.column, s.replacing = 0, false
	case '\b':
		s.column = max(0, s.column-1)
	default:
		return s.escape(text)
	}
	return 1
}

func (s *screen) newline(end string) {
	for len(s.ends) <= s.row {
		s.ends = append(s.ends, "")
	}
	s.ends[s.row] = end
	s.move(s.row+1, 0)
}

// jump moves the cursor to an existing line, or to the one below all.
func (s *screen) jump(row, column int) {
	if s.effort += len(s.line) + 1; s.effort > maxEffort {
		return
	}
	s.move(min(row, max(len(s.lines), s.row+1)), column)
}

// move moves the cursor and creates a missing line.
func (s *screen) move(row, column int) {
	row = max(0, row)
	if row != s.row {
		s.store()
		s.row = row
		s.line = s.line[:0]
		if row < len(s.lines) {
			s.line = append(s.line, []rune(s.lines[row])...)
		}
	}
	s.column, s.replacing = max(0, column), false
}

func (s *screen) store() {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, "")
	}
	s.lines[s.row] = string(s.line)
}

func (s *screen) text() string {
	s.store()
	var b strings.Builder
	for i, line := range s.lines {
		b.WriteString(line)
		switch {
		case i < len(s.ends) && s.ends[i] != "":
			b.WriteString(s.ends[i])
		case i < len(s.lines)-1:
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// escape applies an escape sequence and returns its length. An incomplete one extends
// to the end of the text.
func (s *screen) escape(text string) int {
	if len(text) == 1 {
		return 1
	}
	switch text[1] {
	case '[':
		for i := 2; i < len(text); i++ {
			switch c := text[i]; {
			case c >= 0x40 && c <= 0x7e:
				s.csi(text[2:i], c)
				return i + 1
			case c < 0x20 || c > 0x7e:
				return i // not a sequence but a plain character
			}
		}
		return len(text)
	case ']', 'P', 'X', '^', '_': // OSC, DCS, SOS, PM, APC: up to BEL or ST
		for i := 2; i < len(text); i++ {
			switch {
			case text[i] == '\a' && text[1] == ']':
				return i + 1
			case strings.HasPrefix(text[i:], "\x1b\\"):
				return i + 2
			case text[i] == '\n' || text[i] == '\r':
				return i // never closed
			}
		}
		return len(text)
	case '(', ')', '*', '+', '#', '%', ' ': // one character follows
		return min(3, len(text))
	}
	_, size := utf8.DecodeRuneInString(text[1:])
	return 1 + size
}

// csi applies the control sequences that move the cursor or erase a line.
func (s *screen) csi(parameters string, final byte) {
	n := number(parameters)
	by := min(max(n, 1), maxMove)
	switch final {
	case 'A', 'F':
		s.jump(s.row-by, s.columnAfter(final == 'F'))
	case 'B', 'E':
		s.jump(s.row+by, s.columnAfter(final == 'E'))
	case 'C':
		s.column += by
	case 'D':
		s.column = max(0, s.column-by)
	case 'G':
		s.column, s.replacing = by-1, s.replacing && by > 1
	case 'K':
		s.erase(n)
	case 'P':
		if s.effort += len(s.line); s.column < len(s.line) && s.effort <= maxEffort {
			s.line = append(s.line[:s.column], s.line[min(len(s.line), s.column+by):]...)
		}
	case 'H', 'f':
		if s.column > 0 || len(s.line) > 0 {
			s.jump(max(len(s.lines), s.row+1), 0)
		}
	}
}

func (s *screen) columnAfter(first bool) int {
	if first {
		return 0
	}
	return s.column
}

// erase removes text of the cursor's line: 0 from the cursor to the end, 1 up to the
// cursor, 2 the whole line.
func (s *screen) erase(what int) {
	if len(s.line) == 0 {
		return
	}
	switch what {
	case 0:
		if s.column < len(s.line) {
			s.count()
			s.line = s.line[:s.column]
		}
	case 1:
		s.count()
		if s.effort += s.column; s.effort > maxEffort {
			return
		}
		for i := range min(s.column+1, len(s.line)) {
			s.line[i] = ' '
		}
	case 2:
		s.count()
		s.line = s.line[:0]
	}
}

// count counts the cursor's line as replaced, once.
func (s *screen) count() {
	if !s.replacing {
		s.replacing = true
		s.overwritten++
	}
}

// number returns the first parameter of a sequence, 0 if there is none.
func number(parameters string) int {
	n := 0
	for _, c := range parameters {
		if c < '0' || c > '9' || n > maxMove {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}
