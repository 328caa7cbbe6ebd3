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
	start, _ := Encoded(s, head)
	_, tail = Encoded(s, tail)
	from -= head - start
	return Excerpt{
		Head: s[:start], Tail: s[tail:], From: from, Omitted: utf8.RuneCountInString(s[start:tail]),
	}, true
}

// minEncoded is the least length of a text that counts as base64. Shorter ones may be
// names or paths.
const minEncoded = 256

// Encoded returns the bounds of the base64 that continues across an offset of a text,
// and the offset itself if there is none. Escapes of JSON are a part of it.
func Encoded(s string, at int) (start, end int) {
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

// Seam is the number of bytes after a cut that are examined but not shown, so that a
// secret across the cut is recognized. It is longer than the longest secret that a run
// may declare, in base64 or in hex, broken into lines. In a hex dump with the text
// beside the bytes, or after long file names, only shorter secrets are recognized.
const Seam = 192 << 10

// SafeEnd returns an offset in a text, at most at, that does not split anything that
// redact removes: the text before it contains no part of a secret that continues. If
// the text is the beginning of a longer one, [Seam] bytes must follow at. A nil redact
// removes nothing.
func SafeEnd(text string, at int, redact func(string) string) int {
	if redact == nil {
		return max(0, at)
	}
	whole := redact(text)
	for at > 0 {
		shown := redact(text[:at])
		same := commonPrefix(whole, shown)
		if same == len(shown) {
			return at
		}
		at -= len(shown) - same
	}
	return 0
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
