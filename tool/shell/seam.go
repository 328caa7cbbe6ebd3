package shell

import (
	"fmt"
)

// seam is how many bytes beside a cut are looked at and not shown, so that a
// secret which the cut would go through is known for one. It is longer than
// any form of a secret that a command is likely to print.
const seam = 64 << 10

// text is the output as the caller of the tool gets it, under a header, and
// whether some of it was dropped. Where the middle is missing, the cut goes
// through nothing that redact would have taken out; nil takes nothing out.
func (h *headTail) text(header string, redact func(string) string) (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dropped() == 0 {
		return h.whole(header), false
	}
	head, tail := string(h.head), h.end()
	if redact != nil {
		head, tail = head[:safeEnd(head, redact)], tail[safeStart(tail, redact):]
	}
	dropped := h.total - int64(len(head)) - int64(len(tail))
	header += fmt.Sprintf("[%d bytes of output, of which %d in the middle are left out]\n", h.total, dropped)
	return cutText(header, head, tail, dropped), true
}

// safeEnd is a place about seam before the end of a head where nothing that
// redact takes out of it goes on.
func safeEnd(head string, redact func(string) string) int {
	whole := redact(head)
	at := len(head) - seam
	for at > 0 {
		shown := redact(head[:at])
		same := commonPrefix(whole, shown)
		if same == len(shown) {
			return at
		}
		at -= len(shown) - same
	}
	return 0
}

// safeStart is the like for the beginning of a tail.
func safeStart(tail string, redact func(string) string) int {
	whole := redact(tail)
	at := seam
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

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
