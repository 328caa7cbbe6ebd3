package follow

import (
	"github.com/pawlrun/pawl/event"
)

const (
	// soFarLimit bounds the bytes of an unfinished answer that are kept for readers
	// that join during it, and pieceSize is the overhead of a piece. A reader that
	// joins during a longer answer receives the whole answer with its event.
	soFarLimit = 512 << 10
	pieceSize  = 256
	// keptSize is how many bytes of memory are kept for the next answer.
	keptSize = 16 << 10
)

// soFar holds the text of the current attempt, joined like [Coalesce]. Its zero value
// is empty.
type soFar struct {
	pieces []piece
	last   Event
	size   int
}

// piece is a sequence of deltas that continue each other, with their joined text.
type piece struct {
	first Event
	text  []byte
}

// add adds a delta, or clears everything at a reset.
func (f *soFar) add(e *Event) {
	if _, reset := e.Data.(event.TextReset); reset || !e.mid {
		f.forget()
		if reset {
			return
		}
	} else if len(f.pieces) == 0 {
		return // its beginning was dropped
	}
	text := textOf(e.Data)
	if n := len(f.pieces); n == 0 || !continues(f.pieces[n-1].first.Data, e.Data) {
		if n < cap(f.pieces) {
			f.pieces = f.pieces[:n+1] // reuses the memory of an earlier piece
		} else {
			f.pieces = append(f.pieces, piece{})
		}
		f.pieces[n].first = *e
		f.size += pieceSize
	}
	p := &f.pieces[len(f.pieces)-1]
	p.text = append(p.text, text...)
	f.last = *e
	f.last.Data = nil
	if f.size += len(text); f.size > soFarLimit {
		*f = soFar{}
	}
}

// forget drops the pieces and keeps some of their memory, because most answers are of
// similar length.
func (f *soFar) forget() {
	kept := f.pieces
	if f.size > keptSize || len(kept) > keptSize/pieceSize {
		kept = nil
	}
	for i := range kept {
		kept[i] = piece{text: kept[i].text[:0]}
	}
	*f = soFar{pieces: kept[:0]}
}

// events returns the pieces as live events, all at the place of the newest delta.
func (f *soFar) events(to []Event) []Event {
	for i := range f.pieces {
		p := &f.pieces[i]
		e := p.first
		e.after, e.behind, e.nth = f.last.after, f.last.behind, f.last.nth
		e.Data = withText(e.Data, string(p.text))
		to = append(to, e)
	}
	return to
}

// textOf returns the text of a delta.
func textOf(d event.Data) string {
	switch d := d.(type) {
	case event.Text:
		return d.Text
	case event.Reasoning:
		return d.Text
	case event.ToolCallDelta:
		return d.Text
	}
	return ""
}

// withText returns a delta with another text.
func withText(d event.Data, text string) event.Data {
	switch d := d.(type) {
	case event.Text:
		d.Text = text
		return d
	case event.Reasoning:
		d.Text = text
		return d
	case event.ToolCallDelta:
		d.Text = text
		return d
	}
	return d
}

// continues reports whether a delta continues the previous one.
func continues(before, d event.Data) bool {
	switch d := d.(type) {
	case event.Text:
		b, ok := before.(event.Text)
		return ok && b.Attempt == d.Attempt && b.Index == d.Index
	case event.Reasoning:
		b, ok := before.(event.Reasoning)
		return ok && b.Attempt == d.Attempt && b.Index == d.Index
	case event.ToolCallDelta:
		b, ok := before.(event.ToolCallDelta)
		return ok && b.Attempt == d.Attempt && b.Index == d.Index && d.Tool == ""
	}
	return false
}

// Apart reports whether a live event stands for itself and is no part of an answer.
func Apart(t event.Type) bool { return t == event.TypeToolProgress || t == event.TypeToolOutput }

// AttemptOf returns the attempt of a delta, 0 for other events.
func AttemptOf(d event.Data) int {
	switch d := d.(type) {
	case event.Text:
		return d.Attempt
	case event.Reasoning:
		return d.Attempt
	case event.ToolCallDelta:
		return d.Attempt
	}
	return 0
}
