package follow

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// Query selects the events of a subscription.
type Query struct {
	// Run is the run. Tree also selects the runs below it.
	Run  string
	Tree bool
	// After is the pos after which the events begin, 0 for all.
	After int64
	// Deltas also selects the live events of the follower's sources.
	Deltas bool
}

// Subscription returns the events of a run, or of a run and its descendants: each
// durable one once, in the order of pos, and live ones in their places. It is for one
// reader.
type Subscription struct {
	follower *Follower
	query    Query
	row      journal.Run
	topic    *topic
	wake     chan struct{}
	// below holds the run and all runs below it, nil for the whole tree.
	below map[string]bool
	// seq is the number of the run's last event, and pos the position of the last
	// event of any run.
	seq, pos int64
	// behind reports whether it reads the journal, and lost whether live events may
	// be missing.
	behind, lost bool
	progress     map[string]*progress
	out          []Event
	closed       bool

	// more reports whether more events are available at once. most is how many
	// events to read from the journal at once.
	more bool
	most int

	// soFar holds the answers under way up to the position of the subscription.
	soFar []Event

	// The rest belongs to the topic. next is the number of the event to read next.
	next   int64
	asleep bool
	buf    []Event
}

// away is the value of next for a subscription that reads the journal and needs nothing
// from the topic.
const away = math.MaxInt64

// Subscribe starts a subscription. The context applies only to the start.
func (f *Follower) Subscribe(ctx context.Context, q Query) (*Subscription, error) {
	s, err := f.subscribe(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("follow: run %s: %w", q.Run, err)
	}
	return s, nil
}

func (f *Follower) subscribe(ctx context.Context, q Query) (*Subscription, error) {
	row, err := f.store.Run(ctx, q.Run)
	if err != nil {
		return nil, err
	}
	row = row.Placed()
	row.Outcome = nil // it may be large, and the run's last event contains it
	s := &Subscription{
		follower: f, query: q, row: row, wake: make(chan struct{}, 1), pos: q.After, behind: true, next: away, most: page, progress: map[string]*progress{},
	}
	if s.seq, err = journal.SeqAfter(ctx, f.store, row, q.After); err != nil {
		return nil, err
	}
	if q.Tree && row.Root != row.ID {
		if err := s.family(ctx); err != nil {
			return nil, err
		}
	}
	return s, f.join(ctx, s, row.Root)
}

// family finds the descendants of a run that is not the root.
func (s *Subscription) family(ctx context.Context) error {
	rows, err := s.follower.store.Runs(ctx, journal.Filter{Root: s.row.Root})
	if err != nil {
		return err
	}
	slices.Reverse(rows) // ancestors first
	s.below = map[string]bool{}
	for _, row := range journal.Below(rows, s.row.ID) {
		s.below[row.ID] = true
	}
	return nil
}

// Close ends the subscription.
func (s *Subscription) Close() {
	if s.closed {
		return
	}
	s.closed = true
	s.topic.unsubscribe(s)
	s.follower.drop(s.topic)
	s.follower.leave()
}

// Wake receives once there may be more events than Poll returned.
func (s *Subscription) Wake() <-chan struct{} { return s.wake }

// More reports whether more events are available at once.
func (s *Subscription) More() bool { return s.behind || s.more }

// CatchUp makes the next Poll read the journal, for events that were not
// published.
func (s *Subscription) CatchUp() { s.behind, s.lost = true, true }

// Poll returns the available events, at most a page, or none. They are valid until the
// next call; their data is shared and must not be changed.
func (s *Subscription) Poll(ctx context.Context) ([]Event, error) {
	if s.closed {
		return nil, errClosed
	}
	s.out = s.out[:0]
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("follow: events of run %s: %w", s.row.ID, err)
		}
		if s.behind {
			if err := s.readOn(ctx); err != nil {
				return nil, fmt.Errorf("follow: events of run %s: %w", s.row.ID, err)
			}
		} else if s.topic.read(s) {
			s.CatchUp()
			continue
		} else if len(s.buf) == 0 {
			return nil, nil
		} else {
			s.sift()
		}
		if len(s.out) > 0 {
			return s.out, nil
		}
	}
}

// Next is Poll that waits until there are events.
func (s *Subscription) Next(ctx context.Context) ([]Event, error) {
	for {
		events, err := s.Poll(ctx)
		if err != nil || len(events) > 0 {
			return events, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
		}
	}
}

// readOn reads a page of the journal. While there are more, the topic keeps nothing for
// the subscription; later events are in the topic.
func (s *Subscription) readOn(ctx context.Context) error {
	select {
	case s.follower.reading <- struct{}{}:
		defer func() { <-s.follower.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s.topic.startAt(s, true)
	records, more, err := s.page(ctx)
	if err != nil {
		return err
	}
	if more {
		s.topic.startAt(s, false)
	}
	for i := range records {
		e, err := decode(&records[i])
		if err != nil {
			return err
		}
		if e.size >= shareFrom {
			e.encoded = s.follower.shelf.of(e.Pos)
		}
		s.durable(e)
	}
	if s.behind = more; more {
		return nil
	}
	if s.lost {
		s.lose()
	}
	s.catchUpLive()
	s.topic.settle(s)
	return nil
}

// page reads the next page of the journal: as many events as last time, or twice as
// many, so that large events are not read repeatedly only to be dropped.
func (s *Subscription) page(ctx context.Context) (records []journal.Record, more bool, err error) {
	records, more, err = s.records(ctx)
	n := fitting(len(records), func(i int) int { return len(records[i].Body) })
	if s.most = min(2*s.most, page); n < len(records) {
		s.most = n
		return slices.Clone(records[:n]), true, err
	}
	return records, more, err
}

// records reads the next records of the journal. Records that a fork shares do not
// belong to its tree.
func (s *Subscription) records(ctx context.Context) (records []journal.Record, more bool, err error) {
	store, most := s.follower.store, s.most
	switch {
	case !s.query.Tree:
		records, err = store.Records(ctx, s.row.ID, s.seq, most)
	case s.seq < s.row.ForkSeq:
		records, err = store.Records(ctx, s.row.ID, s.seq, int(min(int64(most), s.row.ForkSeq-s.seq)))
		return records, true, err
	default:
		records, err = store.Tree(ctx, s.row.Root, s.pos, most)
	}
	return records, len(records) == most, err
}

// durable handles a durable event, and returns it if the query selects it.
func (s *Subscription) durable(e Event) {
	shared := s.seq < s.row.ForkSeq
	if e.Pos <= s.pos {
		s.overtake(&e)
		return
	}
	s.pos = e.Pos
	own := shared || e.Run == s.row.ID
	switch {
	case own:
		s.seq = e.Seq
	case !s.query.Tree:
		return
	case s.below != nil && !s.below[e.Run]:
		if !s.below[e.Parent] {
			return
		}
		s.below[e.Run] = true
	}
	s.pass(&e)
	s.out = append(s.out, e)
}

// sift returns the selected events of the topic.
func (s *Subscription) sift() {
	for i := range s.buf {
		switch e := &s.buf[i]; {
		case e.Seq > 0:
			s.durable(*e)
		case s.givesLive(e):
			s.out = append(s.out, *e)
		}
	}
	clear(s.buf)
}

// rouse wakes the reader once for new events.
func (s *Subscription) rouse() {
	if s.asleep {
		s.asleep = false
		select {
		case s.wake <- struct{}{}:
		default: // it was woken already
		}
	}
}

// progress is what a subscription has returned of one run.
type progress struct {
	// last is the seq of the last durable event.
	last int64
	// spoken is the attempt with live events since then, 0 for none, and said the last
	// delta. torn reports that a part is missing, so that the rest would be misleading.
	// nth is the number of the last live event that was returned.
	spoken int
	said   Event
	torn   bool
	nth    int64
}

// pass handles a durable event, after which live events of earlier attempts do not
// count.
func (s *Subscription) pass(e *Event) {
	if !s.query.Deltas {
		return
	}
	if e.Type() == event.TypeRunCompleted {
		delete(s.progress, e.Run)
		return
	}
	if of := s.progress[e.Run]; of != nil {
		*of = progress{last: e.Seq, nth: of.nth}
		return
	}
	s.progress[e.Run] = &progress{last: e.Seq}
}

// overtake retracts the returned live events of an attempt that a durable event, which
// the reader already has, follows.
func (s *Subscription) overtake(e *Event) {
	of := s.progress[e.Run]
	if of == nil || of.spoken == 0 || e.Seq <= of.last {
		return
	}
	s.out = append(s.out, of.reset())
	*of = progress{last: e.Seq, nth: of.nth}
}

// reset returns the event that retracts the live events of an attempt.
func (of *progress) reset() Event {
	e := of.said
	e.Pos, e.Seq, e.Prev, e.Data = 0, 0, "", event.TextReset{Attempt: of.spoken}
	return e
}

// progressOf returns the progress of the run of a live event, nil if the subscription
// has no live events of it.
func (s *Subscription) progressOf(e *Event) *progress {
	switch {
	case !s.query.Deltas, !s.query.Tree && e.Run != s.row.ID, s.below != nil && !s.below[e.Run]:
		return nil
	}
	of := s.progress[e.Run]
	if of == nil {
		of = &progress{last: e.after}
		s.progress[e.Run] = of
	}
	return of
}

// givesLive reports whether to return a live event, and records it.
func (s *Subscription) givesLive(e *Event) bool {
	of := s.progressOf(e)
	if of != nil && Apart(e.Type()) {
		return true // each one is independent
	}
	if of == nil || e.after < of.last || e.nth <= of.nth || of.torn {
		return false
	}
	if _, reset := e.Data.(event.TextReset); reset {
		spoke := of.spoken > 0
		of.spoken = 0
		return spoke
	}
	attempt := AttemptOf(e.Data)
	if e.mid && of.spoken != attempt {
		of.torn = true
		return false
	}
	of.spoken, of.said, of.nth = attempt, *e, e.nth
	return true
}

// catchUpLive returns the text of unfinished answers, unless a durable event has
// replaced it.
func (s *Subscription) catchUpLive() {
	for i := range s.soFar {
		e := &s.soFar[i]
		of := s.progressOf(e)
		if of == nil || e.after < of.last {
			continue
		}
		of.torn, of.spoken, of.said, of.nth = false, AttemptOf(e.Data), *e, e.nth
		of.said.Data = nil
		s.out = append(s.out, *e)
	}
	s.soFar = nil
}

// lose makes the reader drop an incomplete text. The durable event that follows
// contains all of it.
func (s *Subscription) lose() {
	s.lost = false
	for _, of := range s.progress {
		of.torn = true
		if of.spoken > 0 {
			s.out = append(s.out, of.reset())
			of.spoken = 0
		}
	}
}
