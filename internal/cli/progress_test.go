package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/compare"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/llm"
)

// The words of a failure reach a person without what is around them for the
// model, and with the id that the provider's support asks for.
func TestFailureIsShownInItsOwnWords(t *testing.T) {
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
		if got := progress(event.Event{Data: c.data}, &nextStep{view: new(view.View)}); len(got) != 1 || got[0].text != c.want {
			t.Errorf("%+v reads %.300q, want %.300q", c.data, got, c.want)
		}
	}
}

func TestUnreportedUsageIsShownAsUpperBound(t *testing.T) {
	o := event.Outcome{Usage: llm.Usage{Input: 7, Output: 5}, Cost: &llm.Cost{USD: 0.5, Priced: true}}
	if got := view.Summary(o); !strings.HasSuffix(got, ", 7 tokens in, 5 out, USD 0.5000") {
		t.Errorf("reported: %s", got)
	}
	o.Usage.Estimated = true
	if got := view.Summary(o); !strings.HasSuffix(got, ", at most 7 tokens in, 5 out, at most USD 0.5000") {
		t.Errorf("not reported: %s", got)
	}
	for _, c := range []struct {
		cost      *llm.Cost
		estimated bool
		want      string
	}{
		{nil, true, "no model call"},
		{&llm.Cost{Priced: true}, true, "USD 0.0000"}, // nothing is the most
		{&llm.Cost{USD: 1}, false, "at least USD 1.0000 (some calls have no known price)"},
		{&llm.Cost{USD: 1}, true, "about USD 1.0000 (some calls have no known price, of some the usage is not known)"},
	} {
		if got := money(c.cost, llm.Usage{Estimated: c.estimated}); got != c.want {
			t.Errorf("%+v reads %q, want %q", c, got, c.want)
		}
	}
}

// Every line of a run's page that has money in it says so.
func TestThePageOfARunSaysWhichMoneyIsTheMostThatItCanBe(t *testing.T) {
	unanswered, cost := llm.Usage{Input: 7, Output: 5, Estimated: true}, llm.Cost{USD: 0.5, Priced: true}
	p := pageOfEvents(t,
		event.CycleStart{Cycle: 1},
		event.ModelAttemptFailed{Usage: unanswered, Cost: cost},
		event.ToolCall{CallID: "r-1-1", Tool: "helper"}, event.ChildStarted{Child: "c", Name: "helper", CallID: "r-1-1"},
		event.BudgetCommitted{Run: "c", USD: 0.25, Priced: true, Usage: &unanswered},
	)
	p.Limits.USDPerRun = 5
	var b strings.Builder
	p.head(&b, "pawl")
	p.cycles(&b, ink{})
	for _, want := range []string{"10 out, at most USD 0.7500", "at most USD 0.7500 of 5.00", "helper  resumes with this run  at most USD 0.2500", "10 out  at most USD 0.7500"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
	side := compare.CycleSide{Usage: unanswered, Cost: 0.5}
	b.Reset()
	if printSide(&b, &side, "r"); !strings.Contains(b.String(), "at most USD 0.5000") {
		t.Errorf("of two runs: %s", b.String())
	}
}

func TestSkippedTimeIsShownAfterResume(t *testing.T) {
	p, out, _ := aTerminal(120)
	e := event.Event{Seq: 1, SkippedMs: 8 * 3600 * 1000, Data: event.ToolResult{Tool: "fs.read", Output: "x"}}
	if err := newTextView(io.Discard, p, screen{}, 0, "pawl").show(e); err != nil {
		t.Fatal(err)
	}
	slept, result := strings.Index(out.String(), "8h0m0s not counted"), strings.Index(out.String(), "✓ fs.read")
	if slept < 0 || result < slept {
		t.Errorf("it reads %q", out.String())
	}
}
