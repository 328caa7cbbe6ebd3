package tool

import (
	"fmt"
	"unicode/utf8"
)

// Excerpt is the head and the tail of a text that is too long for a model. It keeps the
// tail because programs print errors at the end.
type Excerpt struct {
	Head, Tail string
	// From is the offset of the omitted part, Omitted its length, both in characters.
	// An invalid UTF-8 byte counts as one character.
	From, Omitted int
}

// Cut returns the head and the tail of a text that is longer than limit characters, and
// reports whether it is. A limit of 0 or less means no limit.
func Cut(s string, limit int) (Excerpt, bool) {
	if limit <= 0 || len(s) <= limit || utf8.RuneCountInString(s) <= limit {
		return Excerpt{}, false
	}
	from := limit * 2 / 3
	head, tail := cutPoints(s, from, limit-from)
	return Excerpt{
		Head: s[:head], Tail: s[tail:], From: from, Omitted: utf8.RuneCountInString(s[head:tail]),
	}, true
}

// Text returns the head and the tail with a line between them that describes the
// omitted part, followed by more, if given.
func (e Excerpt) Text(more string) string {
	if more != "" {
		more = "; " + more
	}
	return fmt.Sprintf("%s\n[… %d characters left out%s …]\n%s", e.Head, e.Omitted, more, e.Tail)
}

// Bound reduces a text that is longer than limit characters to its head and tail with a
// line between them, so that a model knows that a part is missing. A limit of 0 means
// no limit.
func Bound(s string, limit int) (string, bool) {
	e, cut := Cut(s, limit)
	if !cut {
		return s, false
	}
	return e.Text(""), true
}

// cutPoints returns the byte offsets after the first n and before the last m
// characters.
func cutPoints(s string, n, m int) (int, int) {
	head := 0
	for ; n > 0; n-- {
		_, size := utf8.DecodeRuneInString(s[head:])
		head += size
	}
	tail := len(s)
	for ; m > 0; m-- {
		_, size := utf8.DecodeLastRuneInString(s[:tail])
		tail -= size
	}
	return head, tail
}
