package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/event"
)

// ringLimit is how many events a slow subscriber may lag behind before live
// deltas are dropped for it. Durable events are never lost: it reads them from
// the journal.
const ringLimit = 32_768

// Deltas are handed out in small groups: a subscriber that was woken for each of
// them would cost more than the deltas themselves. Nobody sees the wait.
const (
	flushAfter = time.Millisecond
	flushCount = 64
)

// hub hands a run's events to its subscribers. Publishing never waits for a
// subscriber: each reads at its own pace from a shared buffer that holds no
// more than the slowest of them needs, up to ringLimit.
type hub struct {
	run, parent string
	now         func() time.Time

	mu      sync.Mutex
	buf     []entry
	first   int64 // number of buf[0]
	durable int64 // seq of the last durable event published
	subs    []*subscriber
	closed  bool

	// waiting counts the deltas that were not handed out yet; the timer runs
	// while there are any. stamp is the time of the first of them, and of all
	// that follow within the same moment.
	waiting int
	timer   *time.Timer
	stamp   time.Time

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
	veil     *veil
	spoke    bool
	silenced bool
	// streamed counts the bytes of all its deltas, whoever heard them.
	streamed atomic.Int64
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
	h.flush()
}

// say hands out a delta of a model call that is under way.
func (h *hub) say(v *voice, cycle int, data event.Data) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if v.silenced {
		return
	}
	v.spoke = true
	h.utter(cycle, data)
}

func (h *hub) utter(cycle int, data event.Data) {
	if h.waiting == 0 {
		h.stamp = h.now()
		h.startTimer()
	}
	h.waiting++
	h.add(entry{event: event.Event{Run: h.run, Parent: h.parent, Time: h.stamp, Cycle: cycle, Data: data}, after: h.durable})
	if h.waiting >= flushCount {
		h.flush()
	}
}

func (h *hub) startTimer() {
	if h.timer != nil {
		h.timer.Reset(flushAfter)
		return
	}
	h.timer = time.AfterFunc(flushAfter, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.flush()
	})
}

// flush wakes the subscribers for what they have not been woken for.
func (h *hub) flush() {
	if h.waiting > 0 {
		h.waiting = 0
		h.timer.Stop()
	}
	for _, s := range h.subs {
		s.rouse()
	}
}

// silence ends a voice.
func (h *hub) silence(v *voice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v.silenced = true
}

// retract ends a voice and, when it has spoken, says that what it said is void.
func (h *hub) retract(v *voice, cycle, attempt int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v.silenced = true
	if v.spoke {
		h.utter(cycle, event.TextReset{Attempt: attempt})
	}
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
	h.flush()
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
