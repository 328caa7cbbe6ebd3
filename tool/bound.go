package tool

import (
	"fmt"
	"unicode/utf8"
)

// Bound cuts a text that is longer than limit characters to its head and tail
// and says so in between, so that a model knows what it does not see. The tail
// is kept because that is where programs say what went wrong. A limit of 0
// bounds nothing.
func Bound(s string, limit int) (string, bool) {
	if limit <= 0 || len(s) <= limit || utf8.RuneCountInString(s) <= limit {
		return s, false
	}
	head, tail := cutPoints(s, limit*2/3, limit-limit*2/3)
	cut := utf8.RuneCountInString(s[head:tail])
	return fmt.Sprintf("%s\n[… %d characters left out …]\n%s", s[:head], cut, s[tail:]), true
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
