package shell

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pawlrun/pawl/tool"
)

// headTail keeps the first and the last bytes written to it, limit in all. It
// is safe for concurrent use.
type headTail struct {
	limit int
	// written, if not nil, is called for each write.
	written func(p []byte)

	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring once it is full
	at    int
	total int64
}

func newHeadTail(limit int) *headTail { return &headTail{limit: limit} }

// Write never fails and never blocks.
func (h *headTail) Write(p []byte) (int, error) {
	if h.written != nil {
		h.written(p)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(p)
	h.total += int64(n)
	size := h.limit / 2
	take := min(size-len(h.head), len(p))
	h.head = appendDoubling(h.head, p[:take], size)
	h.keepTail(p[take:])
	return n, nil
}

func (h *headTail) keepTail(p []byte) {
	size := h.limit - h.limit/2
	if len(p) > size {
		p = p[len(p)-size:]
	}
	if room := size - len(h.tail); room > 0 {
		take := min(room, len(p))
		h.tail = appendDoubling(h.tail, p[:take], size)
		p = p[take:]
	}
	for len(p) > 0 {
		take := copy(h.tail[h.at:], p)
		h.at = (h.at + take) % size
		p = p[take:]
	}
}

// appendDoubling is append for a buffer of at most size bytes that may become large: it
// allocates two bytes for each byte that is kept, where append allocates five.
func appendDoubling(b, p []byte, size int) []byte {
	if len(p) > cap(b)-len(b) {
		b = slices.Grow(b, min(size-len(b), max(len(p), cap(b))))
	}
	return append(b, p...)
}

// cut returns how many bytes were dropped.
func (h *headTail) cut() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dropped()
}

func (h *headTail) dropped() int64 { return h.total - int64(len(h.head)) - int64(len(h.tail)) }

// String returns the kept output as valid UTF-8, with a line where bytes were dropped.
// It also drops characters that the cut splits.
func (h *headTail) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dropped() == 0 {
		return h.whole("")
	}
	return cutText("", string(h.head), h.end(), h.dropped())
}

// whole returns the complete output after a header, if nothing was dropped. The lock is
// held.
func (h *headTail) whole(header string) string {
	var b strings.Builder
	b.Grow(len(header) + len(h.head) + len(h.tail))
	b.WriteString(header)
	b.Write(h.head)
	b.Write(h.tail[h.at:])
	b.Write(h.tail[:h.at])
	return valid(b.String())
}

// end returns the tail in the order of writing. The lock is held.
func (h *headTail) end() string {
	var b strings.Builder
	b.Grow(len(h.tail))
	b.Write(h.tail[h.at:])
	b.Write(h.tail[:h.at])
	return b.String()
}

// cutText joins head and tail, after a header, with a line about the omitted part
// between them.
func cutText(header, head, tail string, dropped int64) string {
	return strings.Join([]string{
		header, valid(wholeEnd(head)), fmt.Sprintf("\n[… %d bytes left out …]\n", dropped), valid(wholeStart(tail)),
	}, "")
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// wholeEnd drops an incomplete character at the end of s.
func wholeEnd(s string) string {
	for i := 1; i <= min(utf8.UTFMax-1, len(s)); i++ {
		if b := s[len(s)-i]; utf8.RuneStart(b) {
			if !utf8.FullRuneInString(s[len(s)-i:]) {
				return s[:len(s)-i]
			}
			break
		}
	}
	return s
}

// wholeStart drops an incomplete character at the start of s.
func wholeStart(s string) string {
	for i := range min(utf8.UTFMax-1, len(s)) {
		if utf8.RuneStart(s[i]) {
			return s[i:]
		}
	}
	return s
}

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
