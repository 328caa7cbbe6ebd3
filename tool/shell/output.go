package shell

import (
	"fmt"
	"strings"
	"sync"
)

// headTail keeps the first and the last bytes written to it.
type headTail struct {
	mu    sync.Mutex
	limit int
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
	if room := h.limit/2 - len(h.head); room > 0 {
		take := min(room, len(p))
		h.head = append(h.head, p[:take]...)
		p = p[take:]
	}
	if keep := h.limit - h.limit/2; len(p) > keep {
		p = p[len(p)-keep:]
	}
	for len(p) > 0 {
		if len(h.tail) < h.limit-h.limit/2 {
			take := min(h.limit-h.limit/2-len(h.tail), len(p))
			h.tail = append(h.tail, p[:take]...)
			p = p[take:]
			continue
		}
		take := copy(h.tail[h.at:], p)
		h.at = (h.at + take) % len(h.tail)
		p = p[take:]
	}
	return n, nil
}

// cut is how many bytes were dropped.
func (h *headTail) cut() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total - int64(len(h.head)) - int64(len(h.tail))
}

// String is what was kept, with a line where something was dropped.
func (h *headTail) String() string {
	cut := h.cut()
	h.mu.Lock()
	defer h.mu.Unlock()
	tail := string(h.tail[h.at:]) + string(h.tail[:h.at])
	if cut == 0 {
		return strings.ToValidUTF8(string(h.head)+tail, "�")
	}
	return strings.ToValidUTF8(string(h.head), "�") +
		fmt.Sprintf("\n[… %d bytes left out …]\n", cut) + strings.ToValidUTF8(tail, "�")
}
