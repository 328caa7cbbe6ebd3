package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/cli/markdown"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/llm"
)

// textView prints progress to stderr and the answer to stdout. On a terminal the
// model's text is part of the progress; if both are the same terminal, that is the
// answer.
type textView struct {
	out    io.Writer
	answer screen
	// text shows the model's text, nil if stderr is no terminal. both reports that
	// the answer goes to the same terminal.
	text  *liveText
	both  bool
	p     *printer
	after int64
	next  nextStep
	// session holds the warnings that the session has shown, nil for a run by itself. A
	// run of a session is shown without its frame.
	session map[string]bool
	// command reports that the run only runs a command of the user.
	command bool
	// waits: calls wait even if no person can be asked here.
	waits bool

	// open holds the calls whose questions wait until the events before them are
	// written.
	open []string

	// work is the activity of all runs.
	work activity
}

func newTextView(out io.Writer, p *printer, answer screen, after int64, pawl string) *textView {
	p.startOf()
	v := &textView{out: out, p: p, answer: answer, after: after, next: nextStep{pawl: pawl}, work: activity{root: newWorking()}}
	v.next.view = &v.work.root.view
	v.next.view.Steps.Show = pawl
	if p.screen.terminal {
		v.text, v.both = newLiveText(p), answer.terminal && sameStream(out, p.w)
	}
	return v
}

// sameStream reports whether two streams are the same one.
func sameStream(a, b io.Writer) bool {
	f, is := a.(*os.File)
	g, too := b.(*os.File)
	if !is || !too {
		return false
	}
	one, err := f.Stat()
	if err != nil {
		return false
	}
	other, err := g.Stat()
	return err == nil && os.SameFile(one, other)
}

func (v *textView) show(e event.Event) error {
	v.follow(e)
	v.listen(e)
	if !v.ofRoot(e) {
		v.ofChild(e)
		if v.session != nil && v.work.printed {
			v.live(v.work.root.doing)
		}
		return nil
	}
	asking, gated := e.Data.(event.Asking)
	if gated {
		v.open = append(v.open, asking.Question().ID)
	}
	if e.Seq != 0 && e.Seq <= v.after {
		return nil
	}
	defer v.releaseQuestions()
	if _, text := e.Data.(event.Text); v.work.printed && !text { // a text is the live line itself
		v.live(v.work.root.doing)
	}
	v.stepNotes(e)
	if gated && v.p.asks {
		return nil // the question shows it
	}
	for _, l := range append(notesOf(view.Skipped(&e)), v.notes(e)...) {
		v.p.line(l.style, l.text)
	}
	if gated && v.waits {
		v.p.line(plain, waitingNote(e.Run, asking.Question(), v.next.pawl))
	}
	if d, ok := e.Data.(event.RunCompleted); ok {
		return v.printAnswer(d.Outcome.FinalOutput)
	}
	return nil
}

// notes returns the lines of an event. On a terminal the model's text is shown
// separately, and a failed command shows more of its output.
func (v *textView) notes(e event.Event) []note {
	switch d := e.Data.(type) {
	case event.RunParked, event.RunCompleted:
		if v.session != nil {
			return append(v.work.files(), sessionEnd(&e)...)
		}
		return append(v.work.files(), progress(e, &v.next)...)
	case event.RunStarted:
		if v.session != nil {
			return v.newWarnings(d)
		}
	case event.CycleStart, event.InputReceived:
		if v.session != nil {
			return nil
		}
	case event.ToolResult:
		if v.command {
			return append(progress(e, &v.next), wholeOutput(d)...)
		}
	}
	if v.text == nil {
		return progress(e, &v.next)
	}
	switch d := e.Data.(type) {
	case event.Text:
		v.text.piece(d.Text)
	case event.TextReset:
		v.text.reset()
	case event.ModelResponse:
		if d.Purpose != "" {
			return nil
		}
		v.text.whole(llm.Parts(d.Parts).Text())
		return notesOf(view.Hosted(llm.Parts(d.Parts)))
	case event.ToolResult:
		return append(append(progress(e, &v.next), excerpt(d, v.p.screen.width())...), v.unasked()...)
	}
	return progress(e, &v.next)
}

// unasked returns the file change of the call that just ended, unless a question
// has shown it.
func (v *textView) unasked() []note {
	if v.work.edit == nil || v.work.edit.asked {
		return nil
	}
	return v.work.edit.lines(v.p.screen.width() - 1)
}

// ofChild shows what an event of a descendant changed.
func (v *textView) ofChild(e event.Event) {
	if v.text == nil || v.work.edit == nil || v.work.edit.asked {
		return
	}
	v.p.line(green, "  ✓ "+firstLine(v.work.called(v.work.at(e.Run)), 40)+" changed "+onOneLine(v.work.edit.Path))
	for _, l := range v.unasked() {
		v.p.line(l.style, l.text)
	}
}

// stepNotes reports the steps of a workflow: in a live tree if the screen allows
// it, or else in a line for each start and end.
func (v *textView) stepNotes(e event.Event) {
	if v.p.screen.live {
		if len(v.next.view.Steps.Lines)+len(v.work.order) > 0 {
			v.p.setBlock(v.tree)
		}
		switch d := e.Data.(type) {
		case event.RunParked, event.RunCompleted:
			v.p.settle()
			return
		case event.StepFinished:
			if v.next.view.Steps.Line(d.Step) == nil && d.Status == event.StepStatusFailed {
				break
			}
			for i, l := range notesOf(v.next.view.Steps.Printed(e.Run, d)) {
				if i == 0 { // its line is in the tree below
					v.p.line(faint, d.Step+" printed:")
				}
				v.p.line(l.style, l.text)
			}
			return
		default:
			return
		}
	}
	for _, l := range notesOf(v.next.view.Steps.Progress(&e)) {
		v.p.line(l.style, l.text)
	}
}

// mostSteps bounds the lines of a workflow's live tree.
const mostSteps = 20

func (v *textView) tree() []note {
	if now := v.p.now(); now.After(v.next.view.Steps.Now) {
		v.next.view.Steps.Now = now
	}
	v.work.now = v.p.now()
	return liveSteps(&v.next.view.Steps, min(mostSteps, v.p.screen.height()-3), inkFor(v.p.screen), &v.work)
}

// releaseQuestions releases the questions whose earlier events are written. Questions
// from before a resume come after the line that reports it.
func (v *textView) releaseQuestions() {
	for _, call := range v.open {
		v.p.markWritten(call)
	}
	v.open = nil
}

func (v *textView) end() error {
	for _, w := range v.work.runs {
		v.p.stopSilence(w.silence)
	}
	v.p.live("")
	v.p.settle()
	return nil
}

// live shows what the run does, after its progress and cost.
func (v *textView) live(what string) {
	if what == "" {
		v.p.live("")
		return
	}
	if v.session != nil { // its status line has the rest
		v.p.live(cmp.Or(v.work.children(), what))
		return
	}
	w := *v.work.root
	w.doing, w.silence = "", &silence{} // its silence has a line of its own
	v.p.live(w.summary(inkFor(v.p.screen), true, v.p.now()) + " · " + what)
}

// printAnswer prints the result of the run, unless the same screen shows it last.
// On a terminal it is made harmless; a pipe gets every byte.
func (v *textView) printAnswer(answer string) error {
	switch {
	case answer == "", v.both && strings.TrimSpace(answer) == strings.TrimSpace(v.text.last):
		return nil
	case v.answer.terminal:
		answer = strings.Join(markdown.Lines(answer, v.answer.wrapAt(), v.answer.colour), "\n")
	}
	_, err := fmt.Fprintln(v.out, answer)
	return err
}

// listen measures how long the model of a run has been silent. A summary is not
// streamed, so its silence is not measured.
func (v *textView) listen(e event.Event) {
	w := v.work.at(e.Run)
	switch d := e.Data.(type) {
	case event.ModelRequested:
		if d.Purpose != "" || w == v.work.root && e.Seq != 0 && e.Seq <= v.after {
			return
		}
		of := ""
		if w != v.work.root {
			of = cmp.Or(firstLine(v.work.called(w), 40), w.run)
		}
		v.p.startSilence(w.silence, of)
	case event.Text, event.Reasoning, event.ToolCallDelta:
		v.p.restartSilence(w.silence)
	case event.ModelResponse, event.ModelAttemptFailed, event.RunParked, event.RunCompleted:
		v.p.stopSilence(w.silence)
	}
}

// ofRoot reports whether an event belongs to the shown run, not to a descendant.
func (v *textView) ofRoot(e event.Event) bool { return v.work.at(e.Run) == v.work.root }

// follow updates the live lines.
func (v *textView) follow(e event.Event) {
	v.p.update(func() { v.work.add(&e) })
	if v.ofRoot(e) {
		v.next.origin.add(e.Data)
	}
	if d, ok := e.Data.(event.RunStarted); ok && v.ofRoot(e) {
		v.waits = v.p.cannotAsk && waits(d.Config)
	}
}
