package cli

import (
	"fmt"
	"time"
)

// quietAfter is how long a model may send nothing before the terminal reports it.
const quietAfter = 30 * time.Second

// silence measures how long the current model call of a run has sent no data. The
// mutex of its printer guards it.
type silence struct {
	// of is the name of the step or child; it is empty for the run shown, whose message
	// has a line of its own. The message about a child stands in its line of the tree.
	of string
	// since is the time of the request or of the last data; it is zero without a call.
	since time.Time
	// printed reports whether the one line of this attempt was written, where a line cannot
	// be redrawn.
	printed bool
	next    *time.Timer
}

// text returns the message about the silence, empty while it is short.
func (s *silence) text(now time.Time) string {
	waited := now.Sub(s.since)
	if s.since.IsZero() || waited < quietAfter {
		return ""
	}
	return fmt.Sprintf("no data for %d s", int(waited.Seconds()))
}

// startSilence begins to measure when a model call of a step or child starts, or of the
// run shown, which has no name.
func (p *printer) startSilence(s *silence, of string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.of, s.since, s.printed = of, p.now(), false
	if of == "" {
		p.silence = s
	}
	if s.next == nil {
		s.next = time.AfterFunc(quietAfter, func() { p.reportSilence(s) })
	}
	s.next.Reset(quietAfter)
}

// restartSilence measures anew when data has arrived.
func (p *printer) restartSilence(s *silence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.since.IsZero() {
		p.endSilence(s, p.now())
		s.next.Reset(quietAfter)
	}
}

// stopSilence ends the measurement when the call has ended.
func (p *printer) stopSilence(s *silence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.next != nil {
		p.endSilence(s, time.Time{})
		s.next.Stop()
	}
}

// endSilence removes the drawn message.
func (p *printer) endSilence(s *silence, since time.Time) {
	drawn := s.text(p.now()) != ""
	s.since = since
	if drawn && !p.asking {
		p.write()
	}
}

// reportSilence draws how long the silence lasts, once a second, or writes one line
// where nothing can be drawn again.
func (p *printer) reportSilence(s *silence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := s.text(p.now())
	if text != "" && s.of != "" {
		text = s.of + " " + text
	}
	switch {
	case s.since.IsZero():
		return
	case text == "": // data has arrived meanwhile
	case p.screen.live:
		if !p.asking {
			p.write()
		}
		s.next.Reset(time.Second)
	case !s.printed && p.asking:
		s.printed, p.held = true, append(p.held, "  "+text)
	case !s.printed:
		s.printed = true
		fmt.Fprintln(p.w, "  "+text)
	}
}
