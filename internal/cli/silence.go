package cli

import (
	"fmt"
	"time"
)

// quietAfter is how long a model may send nothing before the terminal reports it.
const quietAfter = 30 * time.Second

// silence measures how long the current model call has sent no data. The mutex of its
// printer guards it.
type silence struct {
	// since is the time of the request or of the last data; it is zero without a call.
	since time.Time
	// told reports whether the one line of this attempt was written, where a line cannot
	// be redrawn.
	told bool
	next *time.Timer
}

// text returns the message about the silence, empty while it is short.
func (s *silence) text(now time.Time) string {
	waited := now.Sub(s.since)
	if s.since.IsZero() || waited < quietAfter {
		return ""
	}
	return fmt.Sprintf("  no data for %d s", int(waited.Seconds()))
}

// startSilence begins to measure when a model call starts.
func (p *printer) startSilence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silence.since, p.silence.told = p.now(), false
	if p.silence.next == nil {
		p.silence.next = time.AfterFunc(quietAfter, p.reportSilence)
	}
	p.silence.next.Reset(quietAfter)
}

// restartSilence measures anew when data has arrived.
func (p *printer) restartSilence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.silence.since.IsZero() {
		p.endSilence(p.now())
		p.silence.next.Reset(quietAfter)
	}
}

// stopSilence ends the measurement when the call has ended.
func (p *printer) stopSilence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silence.next != nil {
		p.endSilence(time.Time{})
		p.silence.next.Stop()
	}
}

// endSilence removes the drawn message.
func (p *printer) endSilence(since time.Time) {
	drawn := p.silence.text(p.now()) != ""
	p.silence.since = since
	if drawn && !p.asking {
		p.clear()
		p.draw()
	}
}

// reportSilence draws how long the silence lasts, once a second, or writes one line
// where nothing can be drawn again.
func (p *printer) reportSilence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.silence.text(p.now())
	switch {
	case p.silence.since.IsZero():
		return
	case text == "": // data has arrived meanwhile
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
