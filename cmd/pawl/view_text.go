package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// textView prints progress to stderr and the answer to stdout.
type textView struct {
	out    io.Writer
	answer screen
	p      *printer
	after  int64
	// pawl begins the commands that are named as next steps.
	pawl string
	// waits: calls that nobody can be asked about here wait all the same.
	waits bool
	// replays is the run of which this one is a replay, if it is one.
	replays string

	// open are the calls that a question comes about once what is shown is written.
	open []string

	position string
	speech   strings.Builder
}

func newTextView(out io.Writer, p *printer, answer screen, after int64, pawl string) *textView {
	p.tells()
	return &textView{out: out, p: p, answer: answer, after: after, pawl: pawl}
}

func (v *textView) show(e event.Event) error {
	v.follow(e)
	pending, gated := e.Data.(event.ToolPendingApproval)
	if gated {
		v.open = append(v.open, pending.CallID)
	}
	if e.Seq != 0 && e.Seq <= v.after {
		return nil
	}
	defer v.toldOfOpen()
	if what, changed := v.status(e); changed {
		v.live(what)
	}
	if gated && v.p.asks {
		return nil // the question says it
	}
	notes := progress(e, v.pawl)
	if d, ok := e.Data.(event.RunParked); ok && v.replays != "" {
		notes = []note{parkedFor(d), {plain, notGoingOn(v.replays, v.pawl)}}
	}
	for _, l := range append(skipped(e), notes...) {
		v.p.line(l.style, l.text)
	}
	if gated && v.waits {
		v.p.line(plain, waitingNote(e.Run, pending, v.pawl))
	}
	if d, ok := e.Data.(event.RunCompleted); ok {
		return v.printAnswer(d.Outcome.FinalOutput)
	}
	return nil
}

// toldOfOpen lets the questions come of which all that led to them is written.
// Those from before a run went on come after the line that says so.
func (v *textView) toldOfOpen() {
	for _, call := range v.open {
		v.p.toldUpTo(call)
	}
	v.open = nil
}

func (v *textView) end() error {
	v.p.live("", "")
	return nil
}

func (v *textView) live(what string) {
	if what == "" {
		v.p.live("", "")
		return
	}
	v.p.live(v.position+" · ", what)
}

// printAnswer prints what the run was for. Only a terminal needs protection
// from it; a pipe gets every byte.
func (v *textView) printAnswer(answer string) error {
	if answer == "" {
		return nil
	}
	if v.answer.terminal {
		answer = harmless(answer)
	}
	_, err := fmt.Fprintln(v.out, answer)
	return err
}

// follow keeps what the live line shows: where the run is, and what the model
// is saying.
func (v *textView) follow(e event.Event) {
	switch d := e.Data.(type) {
	case event.RunStarted:
		v.waits, v.replays = v.p.cannotAsk && waits(d.Config), d.Replays
	case event.RunForked:
		v.replays = "" // a fork has tools
	case event.CycleStart:
		v.position = position(d)
		v.speech.Reset()
	case event.Text:
		v.speech.WriteString(d.Text)
	case event.TextReset, event.ModelResponse:
		v.speech.Reset()
	}
}

// status is what goes on after an event, where that changes it; "" for nothing.
func (v *textView) status(e event.Event) (what string, changed bool) {
	switch d := e.Data.(type) {
	case event.CycleStart, event.ModelRequested, event.TextReset:
		return "waiting for the model", true
	case event.Reasoning:
		return "thinking", true
	case event.Text:
		return lastOf(v.speech.String(), 400), true
	case event.ToolCallDelta:
		return "preparing " + d.Tool, true
	case event.ToolStarted:
		return "running a tool", true
	case event.ToolRetrying, event.ModelRetrying:
		return "waiting to try again", true
	case event.ModelResponse, event.ToolPendingApproval, event.RunParked, event.RunCompleted:
		return "", true
	}
	return "", false
}

// lastOf bounds a text before it is looked at rune by rune.
func lastOf(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[len(s)-n:], "")
	}
	return s
}
