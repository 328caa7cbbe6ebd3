package engine

import (
	"context"
	"sync"

	"github.com/pawlrun/pawl/event"
)

// ringLimit is how many events a slow subscriber may lag behind before live
// deltas are dropped for it. Durable events are never lost: it reads them from
// the journal.
const ringLimit = 4096

// hub hands a run's events to its subscribers. Publishing never waits for a
// subscriber: each reads at its own pace from a shared buffer that holds no
// more than the slowest of them needs, up to ringLimit.
type hub struct {
	mu     sync.Mutex
	buf    []event.Event
	first  int64 // number of buf[0]
	subs   map[*subscriber]struct{}
	closed bool
}

type subscriber struct {
	hub    *hub
	next   int64
	wake   chan struct{}
	asleep bool
}

func newHub() *hub { return &hub{subs: map[*subscriber]struct{}{}} }

func (h *hub) publish(e event.Event) {
	h.mu.Lock()
	if len(h.subs) > 0 {
		if len(h.buf) >= ringLimit {
			h.trim()
		}
		h.buf = append(h.buf, e)
		for s := range h.subs {
			s.rouse()
		}
	} else {
		h.first += int64(len(h.buf)) + 1
		h.buf = h.buf[:0]
	}
	h.mu.Unlock()
}

// trim forgets what every subscriber has read; when nobody has read enough, it
// forgets the older half, and those who lag find a gap.
func (h *hub) trim() {
	low := h.first + int64(len(h.buf))
	for s := range h.subs {
		low = min(low, s.next)
	}
	drop := max(int(low-h.first), ringLimit/2)
	n := copy(h.buf, h.buf[drop:])
	clear(h.buf[n:])
	h.buf = h.buf[:n]
	h.first += int64(drop)
}

func (s *subscriber) rouse() {
	if s.asleep {
		s.asleep = false
		s.wake <- struct{}{}
	}
}

func (h *hub) subscribe() *subscriber {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &subscriber{hub: h, next: h.first + int64(len(h.buf)), wake: make(chan struct{}, 1)}
	h.subs[s] = struct{}{}
	return s
}

func (h *hub) unsubscribe(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, s)
	if len(h.subs) == 0 {
		h.first += int64(len(h.buf))
		clear(h.buf)
		h.buf = h.buf[:0]
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for s := range h.subs {
		s.rouse()
	}
}

// read copies what is new into buf. gap says that something before it was
// dropped; ok is false when the run is not driven any more and all was read.
func (s *subscriber) read(ctx context.Context, buf []event.Event) (n int, gap, ok bool) {
	for {
		s.hub.mu.Lock()
		if s.next < s.hub.first {
			s.next, gap = s.hub.first, true
		}
		n = copy(buf, s.hub.buf[s.next-s.hub.first:])
		s.next += int64(n)
		closed := s.hub.closed
		s.asleep = n == 0 && !gap && !closed
		s.hub.mu.Unlock()
		if n > 0 || gap {
			return n, gap, true
		}
		if closed {
			return 0, false, false
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return 0, false, true
		}
	}
}
