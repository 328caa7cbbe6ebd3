package cli

import (
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/cli/markdown"
)

// proseWidth bounds the width of prose: longer lines are hard to read.
const proseWidth = 100

// wrapAt returns the width of prose on a screen.
func (s screen) wrapAt() int { return min(s.width()-1, proseWidth) }

// liveText writes the model's text while it streams: settled lines, and below them
// the unfinished one.
type liveText struct {
	p *printer
	// mu guards the rest from the timer, which draws what waits for the next layout in
	// a live region.
	mu      sync.Mutex
	timer   *time.Timer
	stream  markdown.Writer
	written strings.Builder
	// failed reports that the written text belongs to a failed attempt.
	failed bool
	// next is the earliest next layout: ten times as long as the last one took.
	next time.Time
	// last is the last whole answer.
	last string
}

func newLiveText(p *printer) *liveText {
	return &liveText{p: p, stream: markdown.Writer{Width: p.screen.wrapAt, Colour: p.screen.colour}}
}

// piece adds the next piece of an answer.
func (s *liveText) piece(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed {
		s.again()
	}
	s.written.WriteString(text)
	s.stream.Add(text)
	began := s.p.now()
	if began.Before(s.next) {
		if s.p.region != nil && s.timer == nil {
			s.timer = time.AfterFunc(s.next.Sub(began), s.overdue)
		}
		return
	}
	s.layOut(began)
}

// layOut draws what has arrived.
func (s *liveText) layOut(began time.Time) {
	s.p.answerLines(s.stream.Next())
	s.next = s.p.now().Add(max(repaint, 10*s.p.now().Sub(began)))
}

// overdue draws pieces that no other one has followed.
func (s *liveText) overdue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer = nil; s.written.Len() > 0 && !s.failed {
		s.layOut(s.p.now())
	}
}

// reset drops an answer whose rest will not come.
func (s *liveText) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = s.written.Len() > 0
	s.p.answerLines(nil, "")
}

// whole writes what is missing of a complete answer: it may have arrived at once,
// or a piece may be lost.
func (s *liveText) whole(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest, ok := strings.CutPrefix(text, s.written.String())
	if !ok {
		s.again()
		rest = text
	}
	s.stream.Add(rest)
	s.p.answerLines(s.stream.Close(), "")
	s.written.Reset()
	s.failed, s.last, s.next = false, text, time.Time{}
}

// again restarts a text, with a note below what was written of it.
func (s *liveText) again() {
	if rest := s.stream.Close(); s.written.Len() > 0 {
		s.p.answerLines(rest, "")
		s.p.line(faint, "  (the answer begins again)")
	}
	s.written.Reset()
	s.failed = false
}
