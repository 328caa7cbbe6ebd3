package tool_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/tool"
)

func TestATextIsCutBeforeTheSecretThatTheCutWouldGoThrough(t *testing.T) {
	const secret = "correct-horse"
	redact := func(s string) string { return strings.ReplaceAll(s, secret, "(a secret)") }
	text := "one " + secret + " two " + secret
	for at := range len(text) + 1 {
		want := at
		for _, begin := range []int{4, 22} {
			if begin < at && at < begin+len(secret) {
				want = begin
			}
		}
		if got := tool.SafeEnd(text, at, redact); got != want {
			t.Errorf("at %d: %d, want %d", at, got, want)
		}
		if got := tool.SafeEnd(text, at, nil); got != at {
			t.Errorf("at %d without secrets: %d", at, got)
		}
	}
	if got := tool.SafeEnd(text, -1, nil); got != 0 {
		t.Errorf("before the beginning: %d", got)
	}
}

// FuzzSafeEnd cuts texts that are full of a secret: only what is between them is left
// when the whole ones are removed.
func FuzzSafeEnd(f *testing.F) {
	f.Add("correct-horse", tool.Seam-5, 40)
	f.Add("aaaaaaaa", 7, 0)
	f.Add("abcabcabc", 1, 1)
	f.Add("0123456789abcdef", tool.Seam+8, 2*tool.Seam)
	f.Fuzz(func(t *testing.T, secret string, before, between int) {
		if len(secret) < 2 || len(secret) > 300 || strings.ContainsAny(secret, ".") {
			return
		}
		redact := func(s string) string { return strings.ReplaceAll(s, secret, "") }
		gap := strings.Repeat(".", max(between, -(between+1))%(tool.Seam/2))
		text := strings.Repeat(".", max(before, -(before+1))%(2*tool.Seam)) + strings.Repeat(secret+gap, 1+3*tool.Seam/(len(secret)+len(gap)))
		kept := text[:tool.SafeEnd(text, len(text)-tool.Seam, redact)]
		if left := strings.Trim(redact(kept), "."); left != "" && strings.Contains(secret, left) {
			t.Errorf("%q of %q is kept", left, secret)
		}
	})
}
