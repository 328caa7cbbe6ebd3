// Package follow publishes the events of runs as they come, to any number of
// readers, whichever process drives the runs.
//
// One reader per process follows the end of the journal ([Follower]) and passes
// each event to the subscriptions of its tree. It gets the events that this
// process commits from the drivers, and reads those of other processes. Live
// events come from the runs that are driven here ([Source]). A subscription that
// lags behind reads from the journal, at its own pace, so no driver waits for a
// reader.
package follow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

const (
	// pace is how long after a commit the end of the journal is read: by then most
	// commits of this process have been published, and a busy writer causes a bounded
	// number of reads.
	pace = 20 * time.Millisecond
	// retry is the delay before another read after an error.
	retry = time.Second
	// page is how many events are read from the journal at once.
	page = 500
	// pageBytes bounds the bytes of durable events that a reader gets at once, except
	// for a single larger event. A slow reader holds no more.
	pageBytes = 256 << 10
	// readAtOnce bounds the subscriptions that read the journal concurrently.
	readAtOnce = 8
	// earlyLimit bounds the batches that wait for earlier ones. A batch beyond it is
	// read from the journal.
	earlyLimit = 4096
)

// unknown is the position of a follower without subscriptions.
const unknown = -1

// Follower follows the end of a journal for all subscriptions in this process.
// It is safe for concurrent use.
type Follower struct {
	store journal.Store
	// shelf is for events that several readers read from the journal at the same
	// time.
	shelf shelf
	// reading bounds the subscriptions that read the journal at the same time. A
	// page takes megabytes when it is decoded.
	reading chan struct{}
	// listening counts the subscriptions.
	listening atomic.Int32

	mu sync.Mutex
	// topics holds the trees that are subscribed to or driven, by root.
	topics map[string]*topic
	// pos is the position of the last published event. early holds batches that drivers
	// committed after a missing pos, by their first pos.
	pos   int64
	early map[int64]batch
	// begins are the channels of Begun.
	begins map[chan<- struct{}]bool
	stop   context.CancelFunc
}

// batch are events of one tree with consecutive positions.
type batch struct {
	root  string
	first int64
	count int
	at    func(i int) Event
}

// Event is a published event. A live event has no Seq and is not stored.
type Event struct {
	event.Event
	// after is the number of the durable event that a live one follows, and behind its
	// pos. mid reports that it is not the first of its attempt.
	after, behind int64
	mid           bool
	// nth counts the live events of a tree.
	nth int64
	// size is the stored size of a durable event in bytes.
	size int
	// encoded is shared by all readers of the event; nil if there is only one.
	encoded *encoded
}

type encoded struct {
	once sync.Once
	text []byte
	err  error
}

// JSON returns the event as clients see it, on one line. It must not be changed.
func (e *Event) JSON() ([]byte, error) {
	if e.encoded == nil {
		return e.MarshalJSON()
	}
	e.encoded.once.Do(func() { e.encoded.text, e.encoded.err = e.MarshalJSON() })
	return e.encoded.text, e.encoded.err
}

// New returns a follower of a journal. It reads nothing before the first
// subscription.
func New(store journal.Store) *Follower {
	return &Follower{store: store, reading: make(chan struct{}, readAtOnce), topics: map[string]*topic{}, pos: unknown, early: map[int64]batch{}, begins: map[chan<- struct{}]bool{}}
}

// join adds a subscription to its tree.
func (f *Follower) join(ctx context.Context, s *Subscription, root string) error {
	if _, err := f.listen(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.topic = f.take(root)
	s.topic.subscribe(s, f.pos)
	return nil
}

// listen counts a subscription, and starts to follow the journal for the first
// one. It returns the pos up to which all events are published.
func (f *Follower) listen(ctx context.Context) (pos int64, err error) {
	f.listening.Add(1)
	f.mu.Lock()
	known := f.pos != unknown
	f.mu.Unlock()
	var last int64
	if !known {
		if last, err = f.store.Last(ctx); err != nil {
			f.leave()
			return 0, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pos == unknown {
		f.begin(last)
	}
	return f.pos, nil
}

// begin starts to follow the journal after a pos.
func (f *Follower) begin(pos int64) {
	f.reach(pos)
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	go f.follow(ctx)
}

// leave removes a subscription; nothing is read when there is none.
func (f *Follower) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listening.Add(-1) > 0 {
		return
	}
	f.pos = unknown
	clear(f.early)
	if f.stop != nil {
		f.stop()
		f.stop = nil
	}
}

// take returns the topic of a tree, and counts its user.
func (f *Follower) take(root string) *topic {
	t := f.topics[root]
	if t == nil {
		t = &topic{root: root}
		f.topics[root] = t
	}
	t.users++
	return t
}

func (f *Follower) drop(t *topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(f.topics, t.root)
	}
}

// follow reads the end of the journal after each commit, and once at the start.
func (f *Follower) follow(ctx context.Context) {
	changed := f.store.Watch(ctx)
	for {
		more, err := f.read(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.tear()
			if !sleep(ctx, retry) {
				return
			}
			continue
		case more:
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		if !f.settle(ctx) {
			return
		}
	}
}

// settle waits until the commits of this process pause: then either all of them were
// published, or the next events come from another process and must be read. It returns
// false if ctx ended.
func (f *Follower) settle(ctx context.Context) bool {
	for before := int64(unknown); ; {
		if !sleep(ctx, pace) {
			return false
		}
		f.mu.Lock()
		pos := f.pos
		f.mu.Unlock()
		if pos == before || pos == unknown {
			return true
		}
		before = pos
	}
}

// sleep reports whether a time has passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// read publishes a page of the journal, and reports whether there may be more.
func (f *Follower) read(ctx context.Context) (more bool, err error) {
	f.mu.Lock()
	pos := f.pos
	f.mu.Unlock()
	if pos == unknown {
		return false, nil
	}
	records, err := f.store.Tail(ctx, pos, page)
	if err != nil {
		return false, fmt.Errorf("follow: read the end of the journal: %w", err)
	}
	if len(records) == 0 { // the usual case after this process's own commits
		return false, nil
	}
	f.mu.Lock()
	wanted := map[string]bool{}
	for root, t := range f.topics {
		wanted[root] = t.subscribed()
	}
	events := make([]Event, len(records))
	for i := range records {
		if b, ok := f.early[records[i].Pos]; ok {
			for n := range min(b.count, len(events)-i) {
				events[i+n] = b.at(n)
			}
		}
	}
	f.mu.Unlock()
	for i := range records {
		if events[i].Data == nil && wanted[records[i].Root] {
			// The readers of a topic with an undecodable event read the journal
			// themselves.
			if e, err := decode(&records[i]); err == nil {
				events[i] = e
			}
		}
	}
	f.hand(records, events)
	return len(records) == page, nil
}

func decode(r *journal.Record) (Event, error) {
	e, err := event.Decode(r.Body)
	if err != nil {
		return Event{}, fmt.Errorf("follow: run %s, event %d: %w", r.Run, r.Seq, err)
	}
	e.Pos = r.Pos
	return Event{Event: *e, size: len(r.Body)}, nil
}

// hand publishes the events that were read, except those that drivers have
// published meanwhile.
func (f *Follower) hand(records []journal.Record, events []Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pos == unknown {
		return
	}
	touched := map[*topic]bool{}
	for i := range records {
		if records[i].Pos <= f.pos {
			continue
		}
		f.pos = records[i].Pos
		f.begun(event.Type(records[i].Type), records[i].Run, records[i].Root)
		if t := f.topics[records[i].Root]; t != nil {
			t.hand(f.pos, 1, func(int) Event { return events[i] })
			touched[t] = true
		}
	}
	for t := range touched {
		t.flush()
	}
	f.reach(f.pos)
}

// reach records that everything up to a pos is published or not wanted, and publishes
// the batches that waited for it.
func (f *Follower) reach(pos int64) {
	f.pos = pos
	for first := range f.early {
		if first <= pos {
			delete(f.early, first)
		}
	}
	for {
		b, ok := f.early[f.pos+1]
		if !ok {
			return
		}
		delete(f.early, f.pos+1)
		f.publish(b)
	}
}

// publish publishes a batch that directly follows the last one.
func (f *Follower) publish(b batch) {
	f.pos = b.first + int64(b.count) - 1
	e := b.at(0)
	f.begun(e.Type(), e.Run, b.root)
	if t := f.topics[b.root]; t != nil {
		t.hand(f.pos, b.count, b.at)
		t.flush()
	}
}

// tear makes all subscriptions read the journal themselves, so that they receive its
// error.
func (f *Follower) tear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.topics {
		t.tear()
	}
	f.notifyBegun()
}

// errClosed is returned by a closed subscription.
var errClosed = errors.New("follow: the subscription is closed")
