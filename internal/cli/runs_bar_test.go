package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// pageOfEvents is the page of a run with this data.
func pageOfEvents(t *testing.T, data ...event.Data) page {
	t.Helper()
	var d view.Digest
	for i, data := range data {
		d.Add(&event.Event{Seq: int64(i + 1), Data: data})
	}
	return digestPage(journal.Run{}, &d)
}

func spentPage(t *testing.T, more ...event.Data) page {
	t.Helper()
	cost := func(usd float64) llm.Cost { return llm.Cost{USD: usd, Priced: true} }
	return pageOfEvents(t, append([]event.Data{
		event.CycleStart{Cycle: 1},
		event.ModelAttemptFailed{Usage: llm.Usage{Input: 1000, Output: 10, Estimated: true}, Cost: cost(0.01)},
		event.ModelRetrying{Attempt: 2},
		event.ModelResponse{
			Model: "openai/gpt-5", Usage: llm.Usage{Input: 9000, Output: 500}, Cost: cost(0.02),
			Parts: event.Answer{llm.Text{Text: "I look"}},
		},
		event.CycleStart{Cycle: 2},
		event.ModelResponse{Model: "openai/gpt-5", Usage: llm.Usage{Input: 20_000, CacheRead: 9000, Output: 1000}, Cost: cost(0.03)},
		event.CycleStart{Cycle: 3},
		event.ModelResponse{Model: "nobody/knows", Usage: llm.Usage{Input: 40, Output: 2}},
	}, more...)...)
}

func TestThePageOfARunShowsWhereMoneyAndContextWent(t *testing.T) {
	for name, tt := range map[string]struct {
		screen screen
		want   string
	}{
		"elsewhere": {screen{}, `
tokens    . cached input  = fresh input  # output
cycle 1   =========#             10000 in (     0 cached)    510 out  at most USD 0.0300    2 % of window  I look  1 further attempt
cycle 2   ........==========#    20000 in (  9000 cached)   1000 out  USD 0.0300    5 % of window  
cycle 3   =#                        40 in (     0 cached)      2 out  USD 0.0000    
`},
		"on a terminal": {screen{terminal: true, live: true, colour: true}, `
tokens    ░ cached input  ▓ fresh input  █ output
cycle 1   ▓▓▓▓▓▓▓▓▓█             10000 in (     0 cached)    510 out  at most USD 0.0300    2 % of window  I look  1 further attempt
cycle 2   ░░░░░░░░▓▓▓▓▓▓▓▓▓▓█    20000 in (  9000 cached)   1000 out  USD 0.0300    5 % of window  
cycle 3   ▓█                        40 in (     0 cached)      2 out  USD 0.0000    
`},
	} {
		var b strings.Builder
		p := spentPage(t)
		p.cycles(&b, inkFor(tt.screen))
		if diff := cmp.Diff(tt.want, b.String()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTheNumbersBehindTheBarsAreInTheObject(t *testing.T) {
	c := spentPage(t).PerCycle[1]
	if c.Context != 20_000 || c.Window != 400_000 || c.WindowShare != 0.05 || c.Usage.CacheRead != 9000 || c.USD != 0.03 {
		t.Errorf("%+v", c)
	}
}

func TestThePageSaysHowMuchOfEachLimitIsUsed(t *testing.T) {
	p := pageOfEvents(t,
		event.RunStarted{Config: json.RawMessage(`{"limits": {"max_cycles": 50, "usd_per_run": 5, "max_tool_calls": 2, "max_wall_time_seconds": 90},
			"targets": [{"model": "acme/own", "context_window": 1000}]}`)},
		event.CycleStart{Cycle: 1},
		event.ModelResponse{Model: "acme/own", Usage: llm.Usage{Input: 400, Output: 10}, Cost: llm.Cost{USD: 0.25, Priced: true}},
		event.ToolStarted{CallID: "c1", Attempt: 1},
		event.ToolStarted{CallID: "c1", Attempt: 2},
		event.BudgetRaised{Setting: "usd_per_run", Value: 7.5},
		event.BudgetRaised{Setting: "max_tool_calls", Value: budget.None},
		event.BudgetRaised{Setting: "max_input_tokens", Value: 9000},
	)
	p.Cycles = 1
	if got, want := p.used(), "USD 0.2500 of 7.50, 1 of 50 cycles, 400 of 9000 tokens in, 0s of 1m30s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if p.ToolCalls != 1 || p.PerCycle[0].WindowShare != 0.4 {
		t.Errorf("%d tool calls; %v of the window that the run was pinned to", p.ToolCalls, p.PerCycle[0].WindowShare)
	}
}

// What the cache did not give is shown where it was missed, and an overrun when
// it happens.
func TestWhatWasPaidForNothingIsShown(t *testing.T) {
	missed := event.CacheBreak{Segment: "system", Guess: "the system text is another", TokensRewritten: 1234, USD: 0.0042}
	const line = "prompt cache missed at system: 1234 tokens charged again, USD 0.0042 (the system text is another)"
	p := spentPage(t, missed)
	var b strings.Builder
	p.cycles(&b, inkFor(screen{}))
	if lines := strings.Split(strings.TrimSpace(b.String()), "\n"); strings.TrimSpace(lines[len(lines)-1]) != line {
		t.Errorf("the page says %s", b.String())
	}
	for want, d := range map[string]event.Data{
		line: missed,
		"a call exceeded its budget reservation: 1.2 of 1 of usd_per_run; nothing starts until the limit is raised": event.BudgetOverrun{Setting: "usd_per_run", Used: 1.2, Limit: 1},
	} {
		if notes := progress(event.Event{Data: d}, &nextStep{view: new(view.View)}); len(notes) != 1 || strings.TrimSpace(notes[0].text) != want {
			t.Errorf("progress says %+v, want %q", notes, want)
		}
	}
}

func TestThePageCountsEveryLimit(t *testing.T) {
	p := spentPage(t)
	p.Cycles, p.ActiveSeconds, p.IdleSeconds = 3, 61.6, 4.19
	p.Limits = budget.Limits{
		MaxCycles: 9, USDPerRun: 2, MaxModelTurns: 7, MaxToolCalls: 8, MaxWallSeconds: 90, MaxInputTokens: 40_000, MaxOutputTokens: 2000,
		MaxIdleSeconds: 30, MaxRequestTokens: 5000,
	}
	const want = "at most USD 0.0600 of 2.00, 3 of 9 cycles, 3 of 7 answers, 0 of 8 tool calls, 30040 of 40000 tokens in, 1512 of 2000 tokens out, " +
		"1m2s of 1m30s, 4.2s of 30s without progress, 5000 tokens a request"
	if got := p.used(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
