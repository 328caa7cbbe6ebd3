package perform

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/llm"
)

// Deltas publishes the deltas of a run's model calls and the progress of its tool calls,
// with their place behind the committed events.
type Deltas struct {
	place *Place
	now   func() time.Time
	// source is nil for a run that is not driven here.
	source *follow.Source

	mu sync.Mutex
	// seq and pos are those of the last committed event.
	seq, pos int64
	// streams counts the sources that have begun.
	streams int
}

// deltaSource is one attempt at a model call, which produces deltas. After it is
// closed nothing more is published, even if its adapter continues.
type deltaSource struct {
	deltaRedactor *deltaRedactor
	closed        bool
	// begun reports whether there was a delta.
	begun bool
	// streamed counts the bytes of all deltas, with or without subscribers.
	streamed atomic.Int64
}

// Open sets where the deltas are published. Close ends that.
func (l *Deltas) Open(source *follow.Source) { l.source = source }

// Close ends the publication.
func (l *Deltas) Close() { l.source.Close() }

// Commit sets the last event that is on disk.
func (l *Deltas) Commit(seq, pos int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq, l.pos = seq, pos
}

// publish publishes a delta of a model call that is under way.
func (l *Deltas) publish(v *deltaSource, cycle int, data event.Data) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.closed {
		return
	}
	first := !v.begun
	l.begun(v, true)
	l.send(cycle, data, first)
}

// report publishes the progress of a tool call, or a piece of its output.
func (l *Deltas) report(cycle int, data event.Data) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.send(cycle, data, true)
}

func (l *Deltas) send(cycle int, data event.Data, first bool) {
	e := event.Event{Run: l.place.Run, Parent: l.place.Parent, Time: l.now(), Cycle: cycle, Step: l.place.Step, Data: data}
	l.source.Say(e, follow.Place{Seq: l.seq, Pos: l.pos, First: first})
}

// end closes a source.
func (l *Deltas) end(v *deltaSource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v.closed = true
	l.begun(v, false)
	l.source.Forget()
}

// begun sets whether a source has begun.
func (l *Deltas) begun(v *deltaSource, is bool) {
	switch {
	case is && !v.begun:
		l.streams++
	case !is && v.begun:
		l.streams--
	}
	v.begun = is
}

// Streaming reports whether an answer arrives.
func (l *Deltas) Streaming() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams > 0
}

// recall voids what a source has published so far. The source continues from the
// start.
func (l *Deltas) recall(v *deltaSource, cycle, attempt int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.closed {
		return
	}
	if v.begun {
		l.send(cycle, event.TextReset{Attempt: attempt}, false)
	}
	l.begun(v, false)
}

// retract closes a source and voids what it has published.
func (l *Deltas) retract(v *deltaSource, cycle, attempt int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v.closed = true
	if v.begun {
		l.send(cycle, event.TextReset{Attempt: attempt}, false)
	}
	l.begun(v, false)
}

// deltaRedactor removes secrets from a model's output before it is published. It
// processes deltas even without subscribers, so that one that joins in the
// middle of a secret does not get the rest of it. A nil deltaRedactor removes
// nothing.
type deltaRedactor struct {
	redactors [2]*secret.Redactor

	mu      sync.Mutex
	strands []segment
}

// segment is a part of an answer: its text, its thoughts or one call. Providers
// send text in order, but may interleave calls.
type segment struct {
	kind  llm.DeltaKind
	index int
	text  *secret.Stream
}

// newDeltaRedactor returns a deltaRedactor for one attempt at a model call.
func (p *Performer) newDeltaRedactor() *deltaRedactor {
	v := &deltaRedactor{redactors: [2]*secret.Redactor{p.Secrets, p.shared.Secrets}}
	if v.redactors[0] == nil && v.redactors[1] == nil {
		return nil
	}
	return v
}

// add publishes the part of a delta that can be published now.
func (v *deltaRedactor) add(delta llm.Delta, publish func(llm.Delta)) {
	if v == nil {
		publish(delta)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.segment(delta)
	if s.index != delta.Index {
		s.end(publish)
		s.index = delta.Index
	}
	for _, r := range v.redactors {
		delta.Tool = r.RedactString(delta.Tool)
	}
	if delta.Text = s.text.Write(delta.Text); delta.Text != "" || delta.Tool != "" {
		publish(delta)
	}
}

// end publishes the rest, because the answer is complete.
func (v *deltaRedactor) end(publish func(llm.Delta)) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.strands {
		v.strands[i].end(publish)
	}
}

// reset drops the part that was held back.
func (v *deltaRedactor) reset() {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.strands = nil
}

func (v *deltaRedactor) segment(delta llm.Delta) *segment {
	for i := range v.strands {
		s := &v.strands[i]
		if s.kind == delta.Kind && (s.index == delta.Index || s.kind != llm.DeltaToolCall) {
			return s
		}
	}
	v.strands = append(v.strands, segment{kind: delta.Kind, index: delta.Index, text: secret.NewStream(v.redactors[:]...)})
	return &v.strands[len(v.strands)-1]
}

func (s *segment) end(publish func(llm.Delta)) {
	if rest := s.text.End(); rest != "" {
		publish(llm.Delta{Kind: s.kind, Index: s.index, Text: rest})
	}
}
