package cli

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/pawlrun/pawl/internal/cli/live"
)

// screen describes what a stream can show.
type screen struct {
	// terminal reports that the stream is a terminal.
	terminal bool
	// live reports that a line can be redrawn, colour that it can be coloured.
	live, colour bool
	// reflows reports that a line wraps to the next row if the window becomes
	// narrower, as in nearly all terminals.
	reflows       bool
	width, height func() int
}

// screenOf inspects a stream and the customary variables.
func screenOf(w any, getenv func(string) string) screen {
	s := screen{width: func() int { return 80 }, height: func() int { return 24 }}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.terminal = true
	s.live = getenv("TERM") != "dumb"
	s.colour = s.live && getenv("NO_COLOR") == ""
	s.reflows = getenv("XTERM_VERSION") == "" && getenv("STY") == "" && getenv("TERM") != "linux"
	s.width = func() int {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
		return 80
	}
	s.height = func() int {
		if _, h, err := term.GetSize(int(f.Fd())); err == nil && h > 0 {
			return h
		}
		return 24
	}
	return s
}

// style is the style of a line of progress.
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

// printer writes progress: permanent lines and, on a terminal, live lines below
// them that are redrawn. It is safe for concurrent use.
type printer struct {
	w      io.Writer
	screen screen
	now    func() time.Time

	mu    sync.Mutex
	fixed string
	// partial is the unfinished line of an answer.
	partial string
	// below returns more live lines above that one; nil if there are none.
	below func() []note
	// shown holds the columns of each live line, empty if there are none.
	shown   []int
	painted time.Time
	// later redraws what is below.
	later *time.Timer
	// silence of the run shown is drawn above the last live line; nil before its first
	// model call.
	silence *silence
	asking  bool
	// asks reports that questions are shown here.
	asks bool
	// cannotAsk reports that calls need approval but no person can be asked here.
	cannotAsk bool
	// held holds the lines that arrived while a question was open.
	held []string
	// region takes what is shown, as messages of package live, in place of w; nil if the
	// printer draws itself.
	region func(any)
	// written has a channel for each call, closed once everything before its question
	// is written; nil if no lines of a run are written.
	written map[string]chan struct{}
}

// repaint is the least time between two redraws: faster is flicker.
const repaint = 50 * time.Millisecond

func newPrinter(w io.Writer, s screen) *printer {
	return &printer{w: w, screen: s, now: time.Now}
}

// line writes a permanent line, after the open question if there is one. It ignores
// errors, because missing progress is no reason to stop a run.
func (p *printer) line(st style, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text = p.screen.paint(st, text)
	if p.asking {
		p.held = append(p.held, text)
		return
	}
	p.write(text)
}

// write writes permanent lines above the live ones.
func (p *printer) write(lines ...string) {
	if p.region != nil {
		p.painted = p.now()
		doing := p.fixed
		if p.silence != nil {
			doing = strings.TrimSpace(doing + " " + p.silence.text(p.now()))
		}
		p.region(live.Printed{Lines: lines, Partial: p.partial, Doing: doing})
		return
	}
	p.clear()
	for _, line := range lines {
		fmt.Fprintln(p.w, line)
	}
	p.draw()
}

// live replaces the live line; an empty text removes it.
func (p *printer) live(fixed string) {
	if !p.screen.live {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fixed, p.partial = fixed, ""
	if fixed != "" && len(p.shown) > 0 && p.now().Sub(p.painted) < repaint {
		return
	}
	p.write()
}

// answerLines writes permanent lines of an answer, and makes the unfinished one the live
// line.
func (p *printer) answerLines(lines []string, partial string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fixed, p.partial = "", partial
	if p.asking {
		p.held = append(p.held, lines...)
		return
	}
	p.write(lines...)
}

// setBlock sets more live lines.
func (p *printer) setBlock(below func() []note) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.below = below
}

// update makes a change to the live lines, which are redrawn soon.
func (p *printer) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	if p.below == nil || p.asking {
		return
	}
	if wait := repaint - p.now().Sub(p.painted); wait > 0 && p.later != nil {
		p.later.Reset(wait)
		return
	}
	p.write()
}

// settle makes the live lines permanent.
func (p *printer) settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.below == nil {
		return
	}
	var lines []string
	for _, l := range p.below() {
		lines = append(lines, p.screen.paint(l.style, l.text))
	}
	p.below = nil
	if p.later != nil {
		p.later.Stop()
	}
	if p.region != nil {
		p.write(lines...)
		return
	}
	p.clear()
	for _, line := range lines {
		fmt.Fprintln(p.w, line)
	}
}

// again redraws the live lines because time has passed.
func (p *printer) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.below == nil:
	case p.asking:
		p.later.Reset(time.Second)
	default:
		p.write()
	}
}

func (p *printer) draw() {
	if p.asking || !p.screen.live {
		return
	}
	width := p.screen.width() - 1
	var rows []string
	if p.below != nil {
		for _, l := range p.below() {
			rows = append(rows, p.screen.paint(l.style, clip(l.text, width)))
		}
		if p.later == nil {
			p.later = time.AfterFunc(time.Second, p.again)
		}
		p.later.Reset(time.Second)
	}
	if p.silence != nil {
		if text := p.silence.text(p.now()); text != "" {
			rows = append(rows, p.screen.paint(yellow, clip("  "+text, width)))
		}
	}
	if text := p.lastLine(width); text != "" {
		rows = append(rows, text)
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprint(p.w, strings.Join(rows, "\n"))
	for _, row := range rows {
		p.shown = append(p.shown, columns(sgr.ReplaceAllString(row, "")))
	}
	p.painted = p.now()
}

// lastLine returns the last of the live lines, "" if there is none.
func (p *printer) lastLine(width int) string {
	switch plainText := sgr.ReplaceAllString(p.partial, ""); {
	case columns(plainText) > width:
		return tail(plainText, width)
	case p.partial != "" || p.fixed == "":
		return p.partial
	}
	return p.screen.paint(faint, clip(p.fixed, width))
}

// sgr matches the sequences that style text.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// ask writes a question, or a part of it, and leaves the cursor after it. Nothing
// else is written until it is answered or withdrawn.
func (p *printer) ask(st style, question string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.region != nil {
		text, ended := strings.CutSuffix(question, "\n")
		if text = p.screen.paint(st, text); ended {
			text += "\n"
		}
		p.region(live.Ask{Text: text})
		return
	}
	p.clear()
	p.asking = true
	fmt.Fprint(p.w, p.screen.paint(st, question))
}

// prompt asks for the answer to the open question: a line, or one of the keys of a
// choice.
func (p *printer) prompt(question string, keys *live.Choice) {
	p.mu.Lock()
	region := p.region
	p.mu.Unlock()
	if region != nil {
		region(live.Prompt{Text: question, Choice: keys})
		return
	}
	p.ask(bold, question)
}

// answered continues after a question.
func (p *printer) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = false
	if p.region != nil {
		p.region(live.Answered{})
	}
	for _, line := range p.held {
		fmt.Fprintln(p.w, line)
	}
	p.held = nil
}

// withdraw ends the line of a question that no longer needs an answer, and
// continues.
func (p *printer) withdraw(why string) {
	p.mu.Lock()
	if p.region != nil {
		defer p.mu.Unlock()
		p.region(live.Answered{Note: p.screen.paint(faint, why)})
		return
	}
	fmt.Fprintln(p.w, p.screen.paint(faint, why))
	p.mu.Unlock()
	p.answered()
}

// clear removes the live lines, including all rows of a line that wrapped because
// the window became narrower.
func (p *printer) clear() {
	if len(p.shown) == 0 {
		return
	}
	above := len(p.shown) - 1
	for _, columns := range p.shown {
		if p.screen.reflows && columns > 0 {
			above += (columns - 1) / max(p.screen.width(), 1)
		}
	}
	if above > 0 {
		fmt.Fprintf(p.w, "\x1b[%dA\r\x1b[J", above)
	} else {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.shown = nil
}

// startOf marks that lines of a run are written here.
func (p *printer) startOf() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written = map[string]chan struct{}{}
}

// writtenBefore returns a channel that is closed once everything before the question about
// a call is written; nil if no lines are written.
func (p *printer) writtenBefore(call string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.written != nil && p.written[call] == nil {
		p.written[call] = make(chan struct{})
	}
	return p.written[call]
}

// markWritten marks everything before the question about a call as written.
func (p *printer) markWritten(call string) {
	written := p.writtenBefore(call)
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-written:
	default:
		close(written)
	}
}
