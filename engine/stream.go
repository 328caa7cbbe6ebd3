package engine

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// stream merges the journal with live events for one subscriber: each durable
// event once, in order and without gaps, and the deltas where they belong.
type stream struct {
	store  journal.Store
	run    string
	deltas bool
	yield  func(event.Event, error) bool

	// last is the seq of the last durable event that was yielded.
	last int64
	// spoken is the attempt whose deltas were yielded since then, 0 for none;
	// torn says that some of its deltas were lost, so that the rest of them
	// would only mislead.
	spoken int
	torn   bool
}

// replay yields what the journal holds beyond the last event yielded. Like
// take it reports whether the subscriber wants more.
func (s *stream) replay(ctx context.Context) bool {
	const page = 500
	for {
		records, err := s.store.Records(ctx, s.run, s.last, page)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			s.fail(err)
			return false
		}
		for _, r := range records {
			e, err := event.Decode(r.Body)
			if err != nil {
				s.fail(err)
				return false
			}
			e.Pos = r.Pos
			if !s.emit(*e) {
				return false
			}
		}
		if len(records) < page {
			return true
		}
	}
}

func (s *stream) fail(err error) {
	s.yield(event.Event{}, fmt.Errorf("engine: events of run %s: %w", s.run, err))
}

// take yields an entry of the hub, unless the journal gave it already.
func (s *stream) take(ctx context.Context, e *entry) bool {
	if e.after > s.last && !s.replay(ctx) {
		return false
	}
	switch {
	case e.event.Seq == 0:
		return s.speak(e)
	case e.event.Seq == s.last:
		// Whatever was lost was lost before this event.
		s.torn = false
	case e.event.Seq > s.last:
		return s.emit(e.event)
	}
	return true
}

func (s *stream) emit(e event.Event) bool {
	s.last, s.spoken, s.torn = e.Seq, 0, false
	return s.yield(e, nil)
}

func (s *stream) speak(e *entry) bool {
	if !s.deltas || s.torn || e.after < s.last {
		return true
	}
	switch d := e.event.Data.(type) {
	case event.Text:
		s.spoken = d.Attempt
	case event.Reasoning:
		s.spoken = d.Attempt
	case event.ToolCallDelta:
		s.spoken = d.Attempt
	case event.TextReset:
		s.spoken = 0
	}
	return s.yield(e.event, nil)
}

// tear notes that deltas were lost. What the subscriber has of the current
// answer has a hole, so it is told to drop it; the whole text is in the durable
// event that follows.
func (s *stream) tear(ctx context.Context, rest []entry) bool {
	if !s.replay(ctx) {
		return false
	}
	s.torn = true
	if !s.deltas || s.spoken == 0 || len(rest) == 0 {
		return true
	}
	e := rest[0].event
	e.Pos, e.Seq, e.Prev, e.Data = 0, 0, "", event.TextReset{Attempt: s.spoken}
	s.spoken = 0
	return s.yield(e, nil)
}
