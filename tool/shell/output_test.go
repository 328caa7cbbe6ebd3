package shell

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlrun/pawl/tool"
)

func TestHeadAndTailAreCutBetweenCharacters(t *testing.T) {
	h := newHeadTail(10)
	for _, part := range []string{"aaaä", "xxxxxxxxxx", "öbbb"} {
		if n, err := h.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if got, want := h.String(), "aaaä\n[… 10 bytes left out …]\nöbbb"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	h = newHeadTail(8)
	fmt.Fprint(h, "aaaäxxxxxxöbbb")
	if got, want := h.String(), "aaa\n[… 8 bytes left out …]\nbbb"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzHeadTail writes a text in pieces and holds what is kept against the text.
func FuzzHeadTail(f *testing.F) {
	f.Add("hello world, hello pawl", 7, 3)
	f.Add("äöüß€😀", 5, 1)
	f.Add("\xff\xfe\xf0\x9f", 2, 2)
	f.Add("", 4, 1)
	f.Fuzz(func(t *testing.T, text string, limit, piece int) {
		limit, piece = 2+abs(limit)%4096, 1+abs(piece)%512
		h := newHeadTail(limit)
		for rest := text; rest != ""; {
			n := min(piece, len(rest))
			fmt.Fprint(h, rest[:n])
			rest = rest[n:]
		}
		got := h.String()
		if h.total != int64(len(text)) || len(h.head)+len(h.tail) > limit {
			t.Fatalf("%d bytes written, %d kept of at most %d", h.total, len(h.head)+len(h.tail), limit)
		}
		if !utf8.ValidString(got) {
			t.Errorf("%q is no text", got)
		}
		if len(text) <= limit {
			if want := strings.ToValidUTF8(text, "\uFFFD"); got != want || h.cut() != 0 {
				t.Errorf("%q, want %q", got, want)
			}
			return
		}
		head, tail := text[:limit/2], text[len(text)-(limit-limit/2):]
		if string(h.head) != head || string(h.tail[h.at:])+string(h.tail[:h.at]) != tail || h.cut() != int64(len(text)-limit) {
			t.Errorf("kept %q … %q of %q", h.head, h.tail, text)
		}
		if note := fmt.Sprintf("\n[… %d bytes left out …]\n", len(text)-limit); !strings.Contains(got, note) {
			t.Errorf("%q does not say that %d bytes are missing", got, len(text)-limit)
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }

// FuzzSeam cuts the beginning off outputs that are full of a secret: only what is
// between them is left when the whole ones are removed.
func FuzzSeam(f *testing.F) {
	f.Add("correct-horse", tool.Seam-5, 40)
	f.Add("aaaaaaaa", 7, 0)
	f.Add("abcabcabc", 1, 1)
	f.Add("0123456789abcdef", tool.Seam+8, 2*tool.Seam)
	f.Fuzz(func(t *testing.T, secret string, before, between int) {
		if len(secret) < 2 || len(secret) > 300 || strings.ContainsAny(secret, ".") {
			return
		}
		redact := func(s string) string { return strings.ReplaceAll(s, secret, "") }
		gap := strings.Repeat(".", abs(between)%(tool.Seam/2))
		text := strings.Repeat(".", abs(before)%(2*tool.Seam)) + strings.Repeat(secret+gap, 1+3*tool.Seam/(len(secret)+len(gap)))
		kept := text[min(safeStart(text, redact), len(text)):]
		if left := strings.Trim(redact(kept), "."); left != "" && strings.Contains(secret, left) {
			t.Errorf("%q of %q is kept", left, secret)
		}
	})
}
