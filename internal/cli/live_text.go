package cli

import (
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/cli/markdown"
)

// proseWidth is how wide prose becomes at most: longer lines are hard to read.
const proseWidth = 100

// wrapAt is how wide prose is on a screen.
func (s screen) wrapAt() int { return min(s.width()-1, proseWidth) }

// liveText writes what the model says while it says it: line by line as they become
// settled, and below them the one that is still being written.
type liveText struct {
	p       *printer
	stream  markdown.Writer
	written strings.Builder
	// failed says that what was written belongs to an attempt that failed.
	failed bool
	// next is when the text is laid out again: not before ten times as long as that
	// took has passed.
	next time.Time
	// last is the last whole answer.
	last string
}

func newLiveText(p *printer) *liveText {
	return &liveText{p: p, stream: markdown.Writer{Width: p.screen.wrapAt, Colour: p.screen.colour}}
}

// piece takes the next piece of an answer.
func (s *liveText) piece(text string) {
	if s.failed {
		s.again()
	}
	s.written.WriteString(text)
	s.stream.Add(text)
	began := s.p.now()
	if began.Before(s.next) {
		return
	}
	s.p.says(s.stream.Next())
	s.next = s.p.now().Add(max(repaint, 10*s.p.now().Sub(began)))
}

// reset takes note that the rest of an answer will not come.
func (s *liveText) reset() {
	s.failed = s.written.Len() > 0
	s.p.says(nil, "")
}

// whole takes an answer once all of it is there, and writes what was not written of
// it: it may have come at once, or a piece of it may be lost.
func (s *liveText) whole(text string) {
	rest, ok := strings.CutPrefix(text, s.written.String())
	if !ok {
		s.again()
		rest = text
	}
	s.stream.Add(rest)
	s.p.says(s.stream.Close(), "")
	s.written.Reset()
	s.failed, s.last, s.next = false, text, time.Time{}
}

// again begins a text anew, and says so below what was written of it.
func (s *liveText) again() {
	if rest := s.stream.Close(); s.written.Len() > 0 {
		s.p.says(rest, "")
		s.p.line(faint, "  (the answer begins again)")
	}
	s.written.Reset()
	s.failed = false
}
