package follow

import (
	"slices"
	"sync"
	"time"
)

const (
	// ringLimit bounds the events that a topic keeps for slow readers, and bytesLimit
	// the bytes of the durable ones. A slower reader reads from the journal, and loses
	// live events.
	ringLimit  = 32_768
	bytesLimit = 8 << 20
	// ringStart is how many events are kept before the readers' positions are
	// checked.
	ringStart = 64
	// Readers are woken for live events in small groups, because a wake-up costs
	// more than an event. People do not see the delay.
	flushAfter = time.Millisecond
	flushCount = 64
)

// topic is a tree of runs that is subscribed to or driven: a buffer from which
// each subscription reads at its own pace. Within limits, it holds no more than
// the slowest of them needs.
type topic struct {
	root string
	// users counts subscriptions and sources; the follower guards it.
	users int

	mu   sync.Mutex
	subs []*Subscription
	// liveSubs counts the subscriptions that want live events, and lives the live
	// events so far.
	liveSubs int
	lives    int64
	// sources are the runs that this process drives.
	sources []*Source
	buf     []Event
	first   int64 // number of buf[0]
	bytes   int   // of the durable events in buf
	limit   int
	// pos is the position of the last event that was published here, and held holds
	// live events that wait for the durable event before them.
	pos  int64
	held []Event
	// waiting counts the live events without a wake-up.
	waiting int
	timer   *time.Timer
}

func (t *topic) end() int64 { return t.first + int64(len(t.buf)) }

// subscribed reports whether there are readers.
func (t *topic) subscribed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.subs) > 0
}

// subscribe adds a reader. pos is the last published position of all trees.
func (t *topic) subscribe(s *Subscription, pos int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.subs) == 0 {
		t.pos = max(t.pos, pos)
	}
	t.subs = append(t.subs, s)
	if s.query.Deltas {
		t.liveSubs++
	}
}

func (t *topic) unsubscribe(s *Subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subs = slices.DeleteFunc(t.subs, func(other *Subscription) bool { return other == s })
	if s.query.Deltas {
		t.liveSubs--
	}
	if len(t.subs) == 0 {
		t.first, t.buf, t.held, t.bytes = t.end(), nil, nil, 0
	}
}

func (t *topic) enter(s *Source) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sources = append(t.sources, s)
}

func (t *topic) exit(s *Source) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sources = slices.DeleteFunc(t.sources, func(other *Source) bool { return other == s })
}

func (t *topic) forget(s *Source) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.said.forget()
}

// hand adds durable events up to a pos. An empty event could not be decoded, or was not
// wanted when it was read; a reader reads it from the journal.
func (t *topic) hand(pos int64, count int, at func(i int) Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.subs) == 0 {
		return
	}
	for i := range count {
		e := at(i)
		if e.Data == nil {
			t.lose()
			continue
		}
		if len(t.subs) > 1 {
			e.encoded = new(encoded)
		}
		t.add(e)
		t.release(e.Pos)
	}
	t.release(pos)
}

// release adds the live events that waited for a pos.
func (t *topic) release(pos int64) {
	t.pos = pos
	n := 0
	for ; n < len(t.held) && t.held[n].behind <= pos; n++ {
		t.add(t.held[n])
	}
	t.held = slices.Delete(t.held, 0, n)
}

// publishLive adds a live event. If the durable event that it follows is not published
// yet, it waits.
func (t *topic) publishLive(from *Source, e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lives++
	e.nth = t.lives
	if !Apart(e.Type()) {
		from.said.add(&e)
	}
	switch {
	case t.liveSubs == 0:
		return
	case e.behind <= t.pos && len(t.held) == 0:
		t.add(e)
	case len(t.held) < ringLimit:
		t.held = append(t.held, e)
		return
	default:
		t.held = nil
		t.lose()
	}
	if t.waiting == 0 {
		t.startTimer()
	}
	if t.waiting++; t.waiting >= flushCount {
		t.rouse()
	}
}

func (t *topic) startTimer() {
	if t.timer == nil {
		t.timer = time.AfterFunc(flushAfter, t.flush)
		return
	}
	t.timer.Reset(flushAfter)
}

// flush wakes the readers that wait.
func (t *topic) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rouse()
}

func (t *topic) rouse() {
	if t.waiting > 0 {
		t.waiting = 0
		t.timer.Stop()
	}
	for _, s := range t.subs {
		s.rouse()
	}
}

// tear makes all readers read the journal.
func (t *topic) tear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lose()
	t.rouse()
}

// lose leaves a gap, which readers detect.
func (t *topic) lose() {
	clear(t.buf)
	t.first, t.buf, t.bytes = t.end()+1, t.buf[:0], 0
}

func (t *topic) add(e Event) {
	t.limit = max(t.limit, ringStart)
	if len(t.buf) >= t.limit || t.bytes > bytesLimit {
		t.trim()
	}
	t.buf = append(t.buf, e)
	t.bytes += e.size
}

// trim drops the events that all readers have read. If that is not enough, it
// keeps more, up to the limits, and then drops the older half; a reader that
// needs it detects a gap.
func (t *topic) trim() {
	low := t.end()
	for _, s := range t.subs {
		low = min(low, s.next)
	}
	n := int(max(low-t.first, 0))
	if len(t.buf)-n >= ringLimit || t.bytes > bytesLimit {
		n = max(n, len(t.buf)/2)
	}
	kept := copy(t.buf, t.buf[n:])
	clear(t.buf[kept:])
	t.first, t.buf, t.bytes = t.first+int64(n), t.buf[:kept], 0
	for i := range t.buf {
		t.bytes += t.buf[i].size
	}
	t.limit = min(max(ringStart, 2*kept), ringLimit)
}

// read copies the new events for a subscription, or reports that earlier ones were
// dropped.
func (t *topic) read(s *Subscription) (gap bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.asleep = false
	if s.next < t.first {
		return true
	}
	defer t.rest(s)
	fresh := t.buf[s.next-t.first:]
	fresh = fresh[:fitting(min(len(fresh), page), func(i int) int { return fresh[i].size })]
	s.buf = append(s.buf[:0], fresh...)
	s.next += int64(len(fresh))
	// The usual case: one reader that keeps up, and a buffer that never grows.
	if len(t.subs) == 1 && s.next == t.end() {
		clear(t.buf)
		t.first, t.buf, t.bytes = s.next, t.buf[:0], 0
	}
	return false
}

// rest notes whether a subscription has read everything, so that it must be
// woken for more.
func (t *topic) rest(s *Subscription) {
	s.more = s.next < t.end()
	s.asleep = !s.more
}

// settle is rest for a subscription that has read the journal to its end.
func (t *topic) settle(s *Subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rest(s)
}

// startAt sets where a subscription begins to read, and what the answers under way
// contain so far.
func (t *topic) startAt(s *Subscription, live bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.next, s.soFar = away, nil
	if !live {
		return
	}
	s.next = t.end()
	if s.query.Deltas {
		for _, from := range t.sources {
			s.soFar = from.said.events(s.soFar)
		}
	}
}

// Coalesce joins consecutive live events that continue each other, so that a reader
// gets them as one. It changes the given events.
func Coalesce(events []Event) []Event {
	out := events[:0]
	for i := range events {
		if len(out) > 0 && joined(&out[len(out)-1], &events[i]) {
			continue
		}
		out = append(out, events[i])
	}
	return out
}

// joined appends a live event to the previous one, if it continues that.
func joined(before, e *Event) bool {
	if before.Run != e.Run || before.Seq > 0 || !continues(before.Data, e.Data) {
		return false
	}
	before.Data = withText(before.Data, textOf(before.Data)+textOf(e.Data))
	return true
}
