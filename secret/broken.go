package secret

import "bytes"

const (
	// longestBreak bounds what may stand between two lines of a form: the end of the
	// one, and the indentation and the number of the other.
	longestBreak = 64
	// longestName bounds what a search prints before a line: the name of its file, and
	// its number.
	longestName = 256
	// longestColumn bounds the text beside a line of hex.
	longestColumn = 160
)

// begins says how much of a text a form takes up that it begins with, 0 where
// it does not; open says that it may, or may take up more, if more text follows.
func (f *form) begins(text []byte) (n int, open bool) {
	if !f.wraps {
		if bytes.HasPrefix(text, f.text) {
			return len(f.text), false
		}
		return 0, bytes.HasPrefix(f.text, text)
	}
	at, dumped := 0, false
	for i, c := range f.text {
		if at < len(text) && text[at] != c && i > 0 {
			n, inDump, open := f.gap(text[at:], i)
			if open {
				return 0, true
			}
			at, dumped = at+n, dumped || inDump
		}
		switch {
		case at == len(text):
			return 0, true
		case text[at] != c:
			return 0, false
		}
		at++
	}
	if !dumped {
		return at, false
	}
	n, open = column(text[at:])
	return at + n, open
}

// gap is how long what a text begins with is that programs put into a form behind
// what was seen of it; dumped says that it is a dump's. The text does not begin with
// what is left. A dump needs a byte before the gap, and the name of a file more, as
// every other line ends in what some form begins with.
func (f *form) gap(text []byte, seen int) (n int, dumped, open bool) {
	left := f.text[seen:]
	if text[0] == ' ' {
		if f.dumps && seen >= 2 {
			n, open = dumpBreak(text, left)
		}
		return n, n > 0, open
	}
	n, open = lineBreak(text, left)
	if n == 0 || open || seen < 2 {
		return n, false, open
	}
	if same, open := goesOn(text[n:], left, 4); same || open {
		return n, false, open
	}
	if f.dumps {
		if m, open := placed(n, false, text, left); m > 0 || open {
			return m, true, open
		}
	}
	if seen >= 3 {
		if m, open := behindName(text, left); m > 0 || open {
			return m, false, open
		}
	}
	return n, false, false
}

// goesOn says whether a text begins with as many characters of what is left of a
// form as are looked at, or with fewer before the next gap.
func goesOn(text, left []byte, look int) (same, open bool) {
	for i, c := range left[:min(look, len(left))] {
		switch {
		case i == len(text):
			return false, true
		case text[i] != c:
			return i > 0 && bytes.IndexByte([]byte("\n\r\\ "), text[i]) >= 0, false
		}
	}
	return true, false
}

// lineBreak is how long the end of a line is that a text begins with, with the
// indentation and the number of the next one; ends and tabs may be written as
// JSON writes them. Digits that are all that is left of a form are no number. It
// is 0 for none; open says that more text may make it a longer one.
func lineBreak(text, left []byte) (n int, open bool) {
	return lineBreakWithin(longestBreak, text, left)
}

// lineBreakWithin is lineBreak for one of so many bytes at most.
func lineBreakWithin(most int, text, left []byte) (n int, open bool) {
	for n <= most {
		rest := text[n:]
		digits := 0
		if n > 0 && !bytes.HasPrefix(rest, left) {
			digits = run(rest, isDigit)
		}
		slashes := run(rest[digits:], isSlash)
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

// behindName is how long the end of a line is that a text begins with, and what
// stands before what is left of a form on the next one, such as the name of a file
// and a number.
func behindName(text, left []byte) (n int, open bool) {
	n = lineEnd(text)
	n += lineEnd(text[n:]) // a carriage return has one more
	head := left[:min(8, len(left))]
	line := text[n:min(len(text), n+longestName+len(head))]
	if end := endOfLine(line); end >= 0 {
		line = line[:end]
	} else {
		open = len(line) < longestName+len(head)
	}
	for from := 0; ; {
		at := bytes.Index(line[from:], head)
		if at < 0 {
			return 0, open
		}
		at += from
		// A few characters may well stand in a name.
		if len(head) == 8 || at > 0 && bytes.IndexByte([]byte(":- \t"), line[at-1]) >= 0 {
			return n + at, false
		}
		from = at + 1
	}
}

// dumpBreak is how long the spaces are that a text begins with, between two bytes of
// a dump in hex, or to the end of its line, with the text beside it and the place
// of the next one.
func dumpBreak(text, left []byte) (n int, open bool) {
	spaces := run(text, isSpace)
	if spaces == len(text) {
		return 0, spaces <= longestBreak
	}
	if spaces <= 2 {
		if same, open := goesOn(text[spaces:], left, 2); same || open {
			return spaces, open
		}
	}
	if spaces == 1 {
		return 0, false
	}
	line := text[:min(len(text), longestColumn)]
	for at := spaces; at < len(line); {
		end := endOfLine(line[at:])
		if end < 0 {
			break
		}
		at += end
		// One line end after the other is one break, which is looked behind once.
		broken, open := lineBreakWithin(longestColumn+longestBreak, text[at:], left)
		if n, open := placed(broken, open, text[at:], left); n > 0 || open {
			return at + n, open
		}
		if !isSlash(text[at]) { // the text beside a dump may say what JSON writes for it
			return 0, false
		}
		at += max(broken, lineEnd(line[at:]))
	}
	return 0, len(text) < longestColumn
}

// placed is how long the end of a line is that a text begins with, n bytes of a
// break, with what a dump has before the bytes of the next one: where they lie,
// which may be numbered, or spaces alone.
func placed(n int, open bool, text, left []byte) (int, bool) {
	if n == 0 || open {
		return 0, open
	}
	if same, open := goesOn(text[n:], left, 2); same || open {
		return n, open
	}
	digits := run(text[n:], isHex)
	at := n + digits
	if at < len(text) && text[at] == ':' {
		at++
	}
	spaces := run(text[at:], isSpace)
	if at+spaces == len(text) {
		return 0, true
	}
	if same, _ := goesOn(text[at+spaces:], left, 1); digits < 4 || spaces == 0 || !same {
		return 0, false
	}
	return at + spaces, false
}

// column is how much of a text goes on with the line of a dump to its end, where the
// text stands beside the bytes.
func column(text []byte) (n int, open bool) {
	beside := false
	for i, c := range text {
		switch {
		case i == longestColumn, !beside && c != ' ' && !isHex(c):
			return 0, false
		case beside && lineEnd(text[i:]) > 0:
			return i, false
		case c == ' ':
			beside = beside || i > 0 && text[i-1] == ' '
		}
	}
	if !beside {
		return 0, true
	}
	return len(text), true
}

// endOfLine is where a text has the end of a line, which JSON may have written, -1
// where it has none.
func endOfLine(text []byte) int {
	for i := 0; i < len(text); {
		at := bytes.IndexAny(text[i:], "\n\r\\")
		if at < 0 {
			return -1
		}
		if i += at; lineEnd(text[i:]) > 0 {
			return i
		}
		i += run(text[i:], isSlash)
	}
	return -1
}

// lineEnd is how long the end of a line is that a text begins with, 0 for none.
func lineEnd(text []byte) int {
	slashes := run(text, isSlash)
	if slashes == len(text) {
		return 0
	}
	switch c := text[slashes]; {
	case slashes == 0 && (c == '\n' || c == '\r'), slashes > 0 && (c == 'n' || c == 'r'):
		return slashes + 1
	}
	return 0
}

// run is how many bytes of a kind a text begins with, up to one more than a
// break may have.
func run(text []byte, of func(byte) bool) int {
	n := 0
	for n < len(text) && n <= longestBreak && of(text[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

func isSlash(c byte) bool { return c == '\\' }

func isSpace(c byte) bool { return c == ' ' }
