package shell

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/tool"
)

// text returns the output for the caller of the tool, after a header, and reports
// whether some of it was dropped. If the middle is missing, the cut does not split
// anything that redact would remove; nil removes nothing.
func (h *headTail) text(header string, redact func(string) string) (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dropped() == 0 {
		return h.whole(header), false
	}
	head, tail := string(h.head), h.end()
	if redact != nil {
		head, tail = head[:tool.SafeEnd(head, len(head)-tool.Seam, redact)], tail[safeStart(tail, redact):]
	}
	dropped := h.total - int64(len(head)) - int64(len(tail))
	header += fmt.Sprintf("[%d bytes of output, of which %d in the middle are left out]\n", h.total, dropped)
	return cutText(header, head, tail, dropped), true
}

// safeStart does for the beginning of a tail what [tool.SafeEnd] does for the end of a
// head.
func safeStart(tail string, redact func(string) string) int {
	whole := redact(tail)
	at := tool.Seam
	for at < len(tail) {
		shown := redact(tail[at:])
		same := commonSuffix(whole, shown)
		if same == len(shown) {
			return at
		}
		at += len(shown) - same
	}
	return len(tail)
}

func commonSuffix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// onScreen applies [tool.Screen] to the text after a header.
func onScreen(header, text string) (shown string, overwritten int) {
	printed := strings.TrimPrefix(text, header)
	shown, overwritten = tool.Screen(printed)
	if shown == printed {
		return text, overwritten
	}
	return text[:len(text)-len(printed)] + shown, overwritten
}
