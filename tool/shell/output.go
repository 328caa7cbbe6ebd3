package shell

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// headTail keeps the first and the last bytes written to it, limit in all. It
// is safe for concurrent use.
type headTail struct {
	limit int

	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring once it is full
	at    int
	total int64
}

func newHeadTail(limit int) *headTail { return &headTail{limit: limit} }

// Write never fails and never blocks.
func (h *headTail) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(p)
	h.total += int64(n)
	take := min(h.limit/2-len(h.head), len(p))
	h.head = append(h.head, p[:take]...)
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
		h.tail = append(h.tail, p[:take]...)
		p = p[take:]
	}
	for len(p) > 0 {
		take := copy(h.tail[h.at:], p)
		h.at = (h.at + take) % size
		p = p[take:]
	}
}

// written is how many bytes came in.
func (h *headTail) written() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total
}

// cut is how many of them were dropped.
func (h *headTail) cut() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dropped()
}

func (h *headTail) dropped() int64 { return h.total - int64(len(h.head)) - int64(len(h.tail)) }

// String is what was kept as valid UTF-8, with a line where something was
// dropped. A character that the cut went through is dropped too.
func (h *headTail) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	tail := string(h.tail[h.at:]) + string(h.tail[:h.at])
	if h.dropped() == 0 {
		return valid(string(h.head) + tail)
	}
	return valid(wholeEnd(string(h.head))) + fmt.Sprintf("\n[… %d bytes left out …]\n", h.dropped()) + valid(wholeStart(tail))
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// wholeEnd drops the beginning of a character at the end of s.
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

// wholeStart drops the end of a character at the start of s.
func wholeStart(s string) string {
	for i := range min(utf8.UTFMax-1, len(s)) {
		if utf8.RuneStart(s[i]) {
			return s[i:]
		}
	}
	return s
}
