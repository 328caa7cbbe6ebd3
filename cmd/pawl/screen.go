package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// screen is what a stream can show.
type screen struct {
	// terminal says that a person may be looking.
	terminal bool
	// live says that a line can be drawn again, colour that it can be painted.
	live, colour bool
	width        func() int
}

// screenOf looks at a stream and at the customary variables.
func screenOf(w any, getenv func(string) string) screen {
	s := screen{width: func() int { return 80 }}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.terminal = true
	s.live = getenv("TERM") != "dumb"
	s.colour = s.live && getenv("NO_COLOR") == ""
	s.width = func() int {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
		return 80
	}
	return s
}

// style is how a line of progress stands out.
type style string

// The styles, as the parameters of a terminal's SGR sequence.
const (
	plain  style = ""
	bold   style = "1"
	faint  style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

func (s screen) paint(st style, text string) string {
	if !s.colour || st == plain {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// printer writes progress: lines that stay, and below them, on a terminal, one
// line that is drawn again and again. It is safe for concurrent use.
type printer struct {
	w      io.Writer
	screen screen
	now    func() time.Time

	mu      sync.Mutex
	fixed   string
	moving  string
	shown   bool
	painted time.Time
	asking  bool
	// asks says that somebody is asked about calls here.
	asks bool
	// cannotAsk says that calls are to be asked about, and that nobody can be
	// asked here.
	cannotAsk bool
	// held are the lines that came while a question was open.
	held []string
	// told has each call whose question what led to it was written for, and
	// those that wait for that; nil where no lines of a run are written.
	told map[string]chan struct{}
}

// repaint is how often the live line is drawn at most: more is flicker.
const repaint = 50 * time.Millisecond

func newPrinter(w io.Writer, s screen) *printer {
	return &printer{w: w, screen: s, now: time.Now}
}

// line writes a line that stays, after the question that is open. Progress is a courtesy: that it cannot be
// written is no reason to stop a run.
func (p *printer) line(st style, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text = p.screen.paint(st, text)
	if p.asking {
		p.held = append(p.held, text)
		return
	}
	p.clear()
	fmt.Fprintln(p.w, text)
	p.draw()
}

// live replaces the line at the bottom by a fixed text and as much of the end
// of a moving one as fits; two empty ones remove it.
func (p *printer) live(fixed, moving string) {
	if !p.screen.live {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fixed, p.moving = fixed, moving
	if fixed+moving != "" && p.shown && p.now().Sub(p.painted) < repaint {
		return
	}
	p.clear()
	p.draw()
}

func (p *printer) draw() {
	if p.fixed+p.moving == "" || p.asking || !p.screen.live {
		return
	}
	width := p.screen.width() - 1
	text := clip(p.fixed, width)
	if room := width - columns(text); room > 0 {
		text += tail(p.moving, room)
	}
	fmt.Fprint(p.w, p.screen.paint(faint, text))
	p.shown, p.painted = true, p.now()
}

// ask writes a question, or a part of it, and leaves the cursor behind it. Until it is answered or
// withdrawn nothing else is written.
func (p *printer) ask(st style, question string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.asking = true
	fmt.Fprint(p.w, p.screen.paint(st, question))
}

// answered goes on after a question.
func (p *printer) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = false
	for _, line := range p.held {
		fmt.Fprintln(p.w, line)
	}
	p.held = nil
}

// withdraw ends the line of a question that nobody needs to answer any more, and
// goes on.
func (p *printer) withdraw(why string) {
	p.mu.Lock()
	fmt.Fprintln(p.w, p.screen.paint(faint, why))
	p.mu.Unlock()
	p.answered()
}

func (p *printer) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// tells says that lines of a run are written here.
func (p *printer) tells() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = map[string]chan struct{}{}
}

// toldOf is closed once everything that came before the question about a call
// is written; nil where no lines are.
func (p *printer) toldOf(call string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told != nil && p.told[call] == nil {
		p.told[call] = make(chan struct{})
	}
	return p.told[call]
}

// toldUpTo says that everything is written that came before the question about a
// call.
func (p *printer) toldUpTo(call string) {
	told := p.toldOf(call)
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-told:
	default:
		close(told)
	}
}
