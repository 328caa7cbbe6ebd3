package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
)

// aTerminal is a screen as wide as told, with a clock that stands still.
func aTerminal(width int) (*printer, *bytes.Buffer, *time.Time) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	p := newPrinter(&out, screen{terminal: true, live: true, width: func() int { return width }})
	p.now = func() time.Time { return now }
	return p, &out, &now
}

func TestTheLiveLineStaysBelowTheLinesThatStay(t *testing.T) {
	p, out, now := aTerminal(40)
	p.live("", "waiting")
	p.line(plain, "cycle 1")
	*now = now.Add(time.Second)
	p.live("", "still waiting")
	p.live("", "")
	want := "waiting" + "\r\x1b[K" + "cycle 1\n" + "waiting" + "\r\x1b[K" + "still waiting" + "\r\x1b[K"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

func TestTheLiveLineIsNotDrawnMoreOftenThanAnEyeFollows(t *testing.T) {
	p, out, now := aTerminal(40)
	for range 100 {
		p.live("", "x")
		*now = now.Add(time.Millisecond)
	}
	if n := strings.Count(out.String(), "x"); n != 2 {
		t.Errorf("drawn %d times in 100 ms, want 2", n)
	}
}

func TestTheLiveLineFitsTheScreenAndShowsTheEnd(t *testing.T) {
	p, out, _ := aTerminal(12)
	p.live("1: ", "one two\nthree \x1b[31mfour")
	if got := out.String(); got != "1: …31mfour" {
		t.Errorf("%q", got)
	}
}

func TestNothingIsDrawnOverAQuestion(t *testing.T) {
	p, out, now := aTerminal(40)
	p.ask("really? ")
	*now = now.Add(time.Second)
	p.live("", "waiting")
	if out.String() != "really? " {
		t.Errorf("%q", out.String())
	}
	p.answered()
	p.live("", "going")
	if !strings.HasSuffix(out.String(), "going") {
		t.Errorf("%q", out.String())
	}
}

func TestAPipeGetsPlainLinesOnly(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(&out, screenOf(&out, func(string) string { return "" }))
	p.live("", "waiting")
	p.line(red, "failed")
	p.live("", "")
	if out.String() != "failed\n" {
		t.Errorf("%q", out.String())
	}
}

func TestWhatModelsAndToolsSayCannotSteerTheTerminal(t *testing.T) {
	const evil = "a\x1b]0;title\x07b\rc\u202Ed\x9b31m\te"
	got := harmless(evil)
	for _, bad := range []string{"\x1b", "\x07", "\r", "\u202E", "\u009b"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q still holds %q", got, bad)
		}
	}
	notes := progress(event.Event{Data: event.ToolResult{Tool: "x", Output: evil}})
	if strings.ContainsAny(notes[0].text, "\x1b\r\x07") {
		t.Errorf("%q", notes[0].text)
	}
}

func TestOnlyAClearYesApproves(t *testing.T) {
	for line, want := range map[string]struct {
		kind   event.ApprovalKind
		reason string
	}{
		"y": {event.ApprovalApproved, ""}, " YES ": {event.ApprovalApproved, ""},
		"n": {event.ApprovalRejected, "declined"}, "No": {event.ApprovalRejected, "declined"},
		"yes please": {event.ApprovalRejected, "yes please"}, "n too risky": {event.ApprovalRejected, "too risky"},
		"not there": {event.ApprovalRejected, "not there"},
	} {
		got, ok := decision(line)
		if !ok || got.Kind != want.kind || got.Reason != want.reason {
			t.Errorf("%q gives %+v", line, got)
		}
	}
	if _, ok := decision("  "); ok {
		t.Error("an empty line decides")
	}
}

func TestAQuestionIsPutAgainUntilItIsAnswered(t *testing.T) {
	p, out, _ := aTerminal(80)
	q := &asker{lines: readLines(strings.NewReader("\n\ny\n")), p: p, by: "ann"}
	got, err := q.ask(t.Context(), event.ToolPendingApproval{Tool: "shell.exec", Args: []byte(`{"command":"ls"}`)})
	if err != nil || got.Kind != event.ApprovalApproved || got.Approver != "ann" {
		t.Errorf("%+v, %v", got, err)
	}
	if n := strings.Count(out.String(), "[y]es"); n != 3 {
		t.Errorf("asked %d times, want 3: %q", n, out.String())
	}
	if _, err := q.ask(t.Context(), event.ToolPendingApproval{}); err != errNoAnswer {
		t.Errorf("after the end of input: %v", err)
	}
}

func TestAQuestionEndsWithTheRun(t *testing.T) {
	p, _, _ := aTerminal(80)
	q := &asker{lines: make(chan string), p: p}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.ask(ctx, event.ToolPendingApproval{}); err == nil {
		t.Error("no error")
	}
}
