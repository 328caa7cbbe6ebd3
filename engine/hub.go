package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pawlrun/pawl/event"
)

// ringLimit is how many events a slow subscriber may lag behind before live
// deltas are dropped for it. Durable events are never lost: it reads them from
// the journal.
const ringLimit = 16_384

// hub hands a run's events to its subscribers. Publishing never waits for a
// subscriber: each reads at its own pace from a shared buffer that holds no
// more than the slowest of them needs, up to ringLimit.
type hub struct {
	mu      sync.Mutex
	buf     []entry
	first   int64 // number of buf[0]
	durable int64 // seq of the last durable event published
	subs    []*subscriber
	closed  bool

	// listeners counts the subscribers that want deltas, so that a run
	// without any does not even build them.
	listeners atomic.Int32
}

// entry is an event with its place among the durable ones: a delta has no
// number of its own, and a subscriber that has read beyond its place from the
// journal must not be given it any more.
type entry struct {
	event event.Event
	after int64
}

// voice is one attempt at a model call as a source of deltas. Once it is
// silenced nothing more of it is published, even when its adapter goes on.
type voice struct {
	spoke    bool
	silenced bool
}

type subscriber struct {
	hub    *hub
	deltas bool
	next   int64
	wake   chan struct{}
	asleep bool
}

// publish hands out durable events, which must be on disk already.
func (h *hub) publish(events []staged) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range events {
		e := &events[i].event
		h.add(entry{event: *e, after: e.Seq - 1})
		h.durable = e.Seq
	}
	for _, s := range h.subs {
		s.rouse()
	}
}

// say hands out a delta of a model call that is under way.
func (h *hub) say(v *voice, e event.Event) {
	h.mu.Lock()
	if !v.silenced {
		v.spoke = true
		h.add(entry{event: e, after: h.durable})
		for _, s := range h.subs {
			if s.deltas {
				s.rouse()
			}
		}
	}
	h.mu.Unlock()
}

// silence ends a voice and says whether it had said anything.
func (h *hub) silence(v *voice) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	v.silenced = true
	return v.spoke
}

// heard says that somebody wants deltas.
func (h *hub) heard() bool { return h.listeners.Load() > 0 }

func (h *hub) add(e entry) {
	if len(h.subs) == 0 {
		h.first++
		return
	}
	if len(h.buf) >= ringLimit {
		h.trim()
	}
	h.buf = append(h.buf, e)
}

func (h *hub) end() int64 { return h.first + int64(len(h.buf)) }

// trim forgets what every subscriber has read; when nobody has read enough, it
// forgets the older half, and those who lag find a gap.
func (h *hub) trim() {
	low := h.end()
	for _, s := range h.subs {
		low = min(low, s.next)
	}
	h.forget(max(int(low-h.first), ringLimit/2))
}

func (h *hub) forget(n int) {
	kept := copy(h.buf, h.buf[n:])
	clear(h.buf[kept:])
	h.buf = h.buf[:kept]
	h.first += int64(n)
}

func (s *subscriber) rouse() {
	if s.asleep {
		s.asleep = false
		s.wake <- struct{}{}
	}
}

func (h *hub) subscribe(deltas bool) *subscriber {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &subscriber{hub: h, deltas: deltas, next: h.end(), wake: make(chan struct{}, 1)}
	h.subs = append(h.subs, s)
	if deltas {
		h.listeners.Add(1)
	}
	return s
}

func (h *hub) unsubscribe(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs = slices.DeleteFunc(h.subs, func(other *subscriber) bool { return other == s })
	if s.deltas {
		h.listeners.Add(-1)
	}
	if len(h.subs) == 0 {
		h.forget(len(h.buf))
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, s := range h.subs {
		s.rouse()
	}
}

// read copies what is new into buf. gap says that something before it was
// dropped; ok is false when the run is not driven any more and all was read.
func (s *subscriber) read(ctx context.Context, buf []entry) (n int, gap, ok bool) {
	for {
		n, gap, closed := s.poll(buf)
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

func (s *subscriber) poll(buf []entry) (n int, gap, closed bool) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.next < h.first {
		s.next, gap = h.first, true
	}
	n = copy(buf, h.buf[s.next-h.first:])
	s.next += int64(n)
	// The usual case: one subscriber that keeps up, and a buffer that never
	// grows.
	if len(h.subs) == 1 && s.next == h.end() {
		h.first, h.buf = s.next, h.buf[:0]
	}
	s.asleep = n == 0 && !gap && !h.closed
	return n, gap, h.closed
}
