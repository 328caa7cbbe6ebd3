package main

import (
	"io"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// The words of a failure reach a person without what is around them for the
// model, and with the id that the provider's support asks for.
func TestAFailureIsToldInItsOwnWords(t *testing.T) {
	long := `{"error": "` + strings.Repeat("x", 1<<17) + `"}`
	for _, c := range []struct {
		data event.Data
		want string
	}{
		{event.ToolResult{Tool: "fs.read", IsError: true, Output: `{"error":"a.txt does not exist","type":"not_found"}`}, "  ✗ fs.read a.txt does not exist"},
		{event.ToolResult{Tool: "fs.read", IsError: true, Output: `{"rejected":true,"reason":"not today"}`}, "  ✗ fs.read rejected: not today"},
		{event.ToolResult{Tool: "fs.read", IsError: true, Output: `{"rejected":true}`}, "  ✗ fs.read rejected"},
		{event.ToolResult{Tool: "shell.exec", IsError: true, Output: "exit code: 2\n{\"error\": 1}"}, "  ✗ shell.exec exit code: 2"},
		{event.ToolResult{Tool: "mine", IsError: true, Output: `{"error": {"code": 7}}`}, `  ✗ mine {"error": {"code": 7}}`},
		{event.ToolResult{Tool: "mine", IsError: true, Output: `{"why": "so"}`}, `  ✗ mine {"why": "so"}`},
		{event.ToolResult{Tool: "mine", IsError: true, Output: long}, "  ✗ mine " + long[:199] + "…"},
		{event.ToolResult{Tool: "mine", Output: `{"error": "none"}`}, `  ✓ mine {"error": "none"}`},
		{event.ModelAttemptFailed{Model: "a/b", Class: llm.ClassAuth, Message: "no key", RequestID: "req_1"}, "  a/b failed (auth): no key (request req_1)"},
		{event.ModelAttemptFailed{Model: "a/b", Class: llm.ClassNetwork, Message: "gone"}, "  a/b failed (network): gone"},
	} {
		if got := progress(event.Event{Data: c.data}, "pawl"); len(got) != 1 || got[0].text != c.want {
			t.Errorf("%+v reads %.300q, want %.300q", c.data, got, c.want)
		}
	}
}

func TestTokensThatNobodyReportedAreCalledTheMostThatTheyCanBe(t *testing.T) {
	o := event.Outcome{Usage: llm.Usage{Input: 7, Output: 5}}
	if got := summary(o); !strings.Contains(got, ", 7 tokens in, 5 out") {
		t.Errorf("reported: %s", got)
	}
	o.Usage.Estimated = true
	if got := summary(o); !strings.Contains(got, ", at most 7 tokens in, 5 out") {
		t.Errorf("not reported: %s", got)
	}
}

func TestWhoComesBackToARunHearsWhatOfTheTimeWasNotItsOwn(t *testing.T) {
	p, out, _ := aTerminal(120)
	e := event.Event{Seq: 1, SkippedMs: 8 * 3600 * 1000, Data: event.ToolResult{Tool: "fs.read", Output: "x"}}
	if err := newTextView(io.Discard, p, screen{}, 0, "pawl").show(e); err != nil {
		t.Fatal(err)
	}
	slept, result := strings.Index(out.String(), "8h0m0s are not the run's time"), strings.Index(out.String(), "✓ fs.read")
	if slept < 0 || result < slept {
		t.Errorf("it reads %q", out.String())
	}
}
