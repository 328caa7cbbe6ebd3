package tool

import (
	"fmt"
	"strings"
	"unicode"
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
// reports whether it is. A limit of 0 or less means no limit. It leaves out base64 whole
// rather than cut it, because half of it is of no use.
func Cut(s string, limit int) (Excerpt, bool) {
	if limit <= 0 || len(s) <= limit || utf8.RuneCountInString(s) <= limit {
		return Excerpt{}, false
	}
	from := limit * 2 / 3
	head, tail := cutPoints(s, from, limit-from)
	start, _ := encoded(s, head)
	_, tail = encoded(s, tail)
	from -= head - start
	return Excerpt{
		Head: s[:start], Tail: s[tail:], From: from, Omitted: utf8.RuneCountInString(s[start:tail]),
	}, true
}

// minEncoded is the least length of a text that counts as base64. Shorter ones may be
// names or paths.
const minEncoded = 256

// encoded returns the bounds of the base64 that continues across an offset of a text,
// and the offset itself if there is none. Escapes of JSON are a part of it.
func encoded(s string, at int) (start, end int) {
	start, end = at, at
	for start > 0 && isEncoded(s[start-1]) {
		start--
	}
	for end < len(s) && isEncoded(s[end]) {
		end++
	}
	has := func(is func(rune) bool) bool { return strings.ContainsFunc(s[start:end], is) }
	if start == at || end == at || end-start < minEncoded || !has(unicode.IsUpper) || !has(unicode.IsLower) || !has(unicode.IsDigit) {
		return at, at
	}
	return start, end
}

func isEncoded(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(`+/=_-\`, c) >= 0
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
