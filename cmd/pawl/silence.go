package main

import (
	"fmt"
	"time"
)

// quietAfter is how long a model may say nothing before a person is told.
const quietAfter = 30 * time.Second

// silence is how long the model that is asked has said nothing. Its printer guards it.
type silence struct {
	// since is when it was asked or last said something, zero where none is asked.
	since time.Time
	// told says that a line about this attempt was written where none can be drawn again.
	told bool
	next *time.Timer
}

// text is what to tell of the silence, "" while it is short.
func (s *silence) text(now time.Time) string {
	waited := now.Sub(s.since)
	if s.since.IsZero() || waited < quietAfter {
		return ""
	}
	return fmt.Sprintf("  no data for %d s", int(waited.Seconds()))
}

// listens says that a model is asked from now on.
func (p *printer) listens() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silence.since, p.silence.told = p.now(), false
	if p.silence.next == nil {
		p.silence.next = time.AfterFunc(quietAfter, p.tellsOfSilence)
	}
	p.silence.next.Reset(quietAfter)
}

// hears says that the model has said something.
func (p *printer) hears() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.silence.since.IsZero() {
		p.breaksSilence(p.now())
		p.silence.next.Reset(quietAfter)
	}
}

// stopsListening says that no model is asked any more.
func (p *printer) stopsListening() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silence.next != nil {
		p.breaksSilence(time.Time{})
		p.silence.next.Stop()
	}
}

// breaksSilence takes away what is drawn of the silence.
func (p *printer) breaksSilence(since time.Time) {
	drawn := p.silence.text(p.now()) != ""
	p.silence.since = since
	if drawn && !p.asking {
		p.clear()
		p.draw()
	}
}

// tellsOfSilence draws how long the silence lasts, once a second, or writes one line
// where nothing can be drawn again.
func (p *printer) tellsOfSilence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.silence.text(p.now())
	switch {
	case p.silence.since.IsZero():
		return
	case text == "": // the model has said something since
	case p.screen.live:
		if !p.asking {
			p.clear()
			p.draw()
		}
		p.silence.next.Reset(time.Second)
	case !p.silence.told && p.asking:
		p.silence.told, p.held = true, append(p.held, text)
	case !p.silence.told:
		p.silence.told = true
		fmt.Fprintln(p.w, text)
	}
}
