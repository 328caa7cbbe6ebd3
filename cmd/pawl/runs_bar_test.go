package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

func spentPage() page {
	var p page
	cost := func(usd float64) llm.Cost { return llm.Cost{USD: usd, Priced: true} }
	for i, d := range []event.Data{
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
	} {
		p.add(&event.Event{Seq: int64(i + 1), Data: d})
	}
	return p
}

func TestThePageOfARunShowsWhereMoneyAndContextWent(t *testing.T) {
	for name, tt := range map[string]struct {
		screen screen
		want   string
	}{
		"elsewhere": {screen{}, `
tokens    . cached input  = fresh input  # output
cycle 1   =========#             10000 in (0 cached)    510 out  USD 0.0300    2 % of window  I look  tried again 1 times
cycle 2   ........==========#    20000 in (9000 cached)   1000 out  USD 0.0300    5 % of window  
cycle 3   =#                        40 in (0 cached)      2 out  USD 0.0000    
`},
		"on a terminal": {screen{terminal: true, live: true, colour: true}, `
tokens    ░ cached input  ▓ fresh input  █ output
cycle 1   ▓▓▓▓▓▓▓▓▓█             10000 in (0 cached)    510 out  USD 0.0300    2 % of window  I look  tried again 1 times
cycle 2   ░░░░░░░░▓▓▓▓▓▓▓▓▓▓█    20000 in (9000 cached)   1000 out  USD 0.0300    5 % of window  
cycle 3   ▓█                        40 in (0 cached)      2 out  USD 0.0000    
`},
	} {
		var b strings.Builder
		p := spentPage()
		p.cycles(&b, inkFor(tt.screen))
		if diff := cmp.Diff(tt.want, b.String()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTheNumbersBehindTheBarsAreInTheObject(t *testing.T) {
	c := spentPage().PerCycle[1]
	if c.Context != 20_000 || c.Window != 400_000 || c.WindowShare != 0.05 || c.Usage.CacheRead != 9000 || c.USD != 0.03 {
		t.Errorf("%+v", c)
	}
}
