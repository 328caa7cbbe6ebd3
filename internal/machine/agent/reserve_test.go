package agent_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
)

// Whatever a provider bills for a call within its reservation, the reservation
// pays for, whichever of the run's calls it is: an answer, a retry, the call of
// a fallback, a summary.
//
// rows: HAR-47
func TestEveryKindOfCallIsReservedAtItsDearest(t *testing.T) {
	dear := &llm.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}
	for _, tt := range []struct {
		name  string
		cache llm.Caching
		worst func(r event.BudgetReserved) llm.Usage
	}{
		{"a cache of five minutes", "", func(r event.BudgetReserved) llm.Usage {
			return llm.Usage{Input: r.Input, Output: r.Output, CacheWrite: r.Input}
		}},
		{"a cache of an hour", llm.CacheLong, func(r event.BudgetReserved) llm.Usage {
			return llm.Usage{Input: r.Input, Output: r.Output, CacheWrite: r.Input, CacheWriteLong: r.Input}
		}},
	} {
		for _, strategy := range []compact.Strategy{compact.SummarizeOlder, compact.PeriodicSummary} {
			t.Run(tt.name+", "+string(strategy), func(t *testing.T) {
				cfg := windowed(compact.Settings{Strategy: strategy})
				cfg.Cache = tt.cache
				cfg.Targets = []agent.Target{{Model: "m/cheap", Price: &llm.Price{Input: 0.1, Output: 0.2}}, {Model: "m/dear", Price: dear}}
				p := newPlay(t, cfg)
				p.breaks(llm.ClassOverloaded)
				p.after(1e9)
				p.work(30)
				p.breaks(llm.ClassThrottled)
				p.after(1e9)
				p.answer(says("what happened"))
				p.answer(says("done"))
				p.check()
				kinds := map[string]int{}
				for _, r := range reservations(t, p) {
					kind := "answer"
					switch {
					case strings.HasPrefix(r.ID, "summary"):
						kind = "summary"
					case strings.HasSuffix(r.ID, ".2"):
						kind = "fallback"
					case r.ID == "1.1":
						continue // of the cheap model
					}
					kinds[kind]++
					if billed := dear.Of(tt.worst(r)); r.USD < billed {
						t.Errorf("%s sets USD %v aside and can cost %v", r.ID, r.USD, billed)
					}
				}
				if kinds["answer"] == 0 || kinds["fallback"] != 1 || kinds["summary"] != 2 {
					t.Errorf("reserved were %v", kinds)
				}
			})
		}
	}
}

// A token has at least one byte, so a summary cannot take more input than what
// its request has.
func TestASummaryIsReservedForAllThatItSends(t *testing.T) {
	p := newPlay(t, windowed(compact.Settings{Strategy: compact.SummarizeOlder}))
	p.work(30)
	if p.call.Purpose != event.PurposeSummary {
		t.Fatal("no summary")
	}
	sent := int64(len(p.call.Request.System))
	for _, m := range p.call.Request.Messages {
		sent += int64(len(m.Text()))
	}
	all := reservations(t, p)
	if r := all[len(all)-1]; r.Input < sent || sent < 1000 {
		t.Errorf("%s sets %d tokens aside for %d bytes", r.ID, r.Input, sent)
	}
}

// A summary that is asked for in place is bounded by what the provider counted of
// the conversation, and by what it has not read yet.
func TestASummaryInPlaceIsReservedForWhatTheProviderHasNotRead(t *testing.T) {
	p := newPlay(t, windowed(compact.Settings{Strategy: compact.PeriodicSummary}))
	p.work(30)
	if p.call.Purpose != event.PurposeSummary {
		t.Fatal("no summary")
	}
	messages := p.call.Request.Messages
	result := messages[len(messages)-2].Parts[0].(llm.ToolResult)
	unread := int64(len(messages[len(messages)-1].Text()) + len(result.Output))
	all := reservations(t, p)
	if r := all[len(all)-1]; r.Input < unread || len(result.Output) == 0 {
		t.Errorf("%s sets %d tokens aside, and %d bytes are unread", r.ID, r.Input, unread)
	}
}

// A provider that holds tools back has not counted them. What a search finds it
// reads whole.
func TestTheToolsThatASearchFoundAreSetAsideFor(t *testing.T) {
	p := newPlay(t, agent.Config{Tools: []llm.ToolDef{
		{Name: "read"},
		{Name: "deploy", Deferred: true, Schema: []byte(`{"description":"` + strings.Repeat("d", 5000) + `"}`)},
		{Name: "other", Deferred: true, Schema: []byte(`{"description":"` + strings.Repeat("o", 5000) + `"}`)},
	}})
	p.answer(used(40, 10, asks("", "read docs")))
	p.result("c1.1", event.ToolResult{Output: "found one", Tools: []string{"deploy"}})
	all := reservations(t, p)
	if r := all[len(all)-1]; r.Input < 5000 || r.Input >= 10_000 {
		t.Errorf("%s sets %d tokens aside", r.ID, r.Input)
	}
}

// Uncounted input is reserved by its bytes, or by a provider's count for an image: an
// estimate of an answer that broke off is no count.
func TestAllThatAConversationHoldsIsSetAsideFor(t *testing.T) {
	long := strings.Repeat("a", 4000)
	raw := json.RawMessage(`{"x":"` + long + `"}`)
	next := func(part llm.Part) int64 {
		answer := asks("", "read a")
		answer.Usage.Estimated = true
		if call, ok := part.(llm.ToolCall); ok {
			answer.Parts[0] = call
		} else if part != nil {
			answer.Parts = append(llm.Parts{part}, answer.Parts...)
		}
		p := newPlay(t, agent.Config{})
		p.answer(answer)
		p.results("c1.1=A")
		all := reservations(t, p)
		return all[len(all)-1].Input
	}
	plain := next(nil)
	call := llm.ToolCall{ProviderID: "p0", Name: "read", Args: json.RawMessage(`{"path":"a"}`)}
	signed, asWritten, longer := call, call, call
	signed.Signature, asWritten.Raw, longer.Args = long, raw, json.RawMessage(`{"path":"`+long+`"}`)
	for name, tt := range map[string]struct {
		part llm.Part
		size int64
	}{
		"text":                               {llm.Text{Text: long}, 4000},
		"text as the provider wrote it":      {llm.Text{Text: "x", Raw: raw}, 4000},
		"a thought":                          {llm.Reasoning{Text: long}, 4000},
		"a thought's signature":              {llm.Reasoning{Signature: long}, 4000},
		"a thought as the provider wrote it": {llm.Reasoning{Text: "x", Raw: raw}, 4000},
		"an item of the provider's":          {llm.Item{Type: "search", Raw: raw}, 4000},
		"a call's arguments":                 {longer, 4000},
		"a call's signature":                 {signed, 4000},
		"a call as the provider wrote it":    {asWritten, 4000},
		"an image, however small":            {llm.Media{MediaType: "image/png", Data: []byte("x")}, 8192},
		"an image, however large":            {llm.Media{MediaType: "image/png", Data: make([]byte, 9000)}, 8192},
		"a document":                         {llm.Media{MediaType: "application/pdf", Data: make([]byte, 4000)}, 4000},
		"a document that lies elsewhere":     {llm.Media{MediaType: "application/pdf", URL: "https://x.test/a.pdf"}, 300_000},
		"an image that lies elsewhere":       {llm.Media{MediaType: "image/png", URL: "https://x.test/a.png"}, 8192},
		"a file of text":                     {llm.Media{MediaType: "text/plain", Data: make([]byte, 4000)}, 4000},
	} {
		if more := next(tt.part) - plain; more < tt.size-16 || more > tt.size+64 {
			t.Errorf("%s: %d tokens more are set aside, want %d", name, more, tt.size)
		}
	}
}

// A document's pages are bounded by what any provider reads of one, a text by
// nothing but its length.
func TestALongTextIsSetAsideForAsAWhole(t *testing.T) {
	for mediaType, want := range map[string]int64{"text/plain": 900_000, "application/pdf": 300_000, "image/png": 8192} {
		if got := agent.MediaSize(llm.Media{MediaType: mediaType, Data: make([]byte, 900_000)}); got != want {
			t.Errorf("%d tokens are set aside for a %s, want %d", got, mediaType, want)
		}
	}
}

// A provider tells the model in words of its own how tools are used. The requests
// are recorded ones, with what was counted of each.
func TestTheWordsAroundToolsAreSetAsideFor(t *testing.T) {
	city := json.RawMessage(`{"additionalProperties":false,"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"}`)
	for name, tt := range map[string]struct {
		cfg     agent.Config
		counted int64
	}{
		"one without arguments": {agent.Config{
			System: "You must use tools whenever possible. What's the best language to learn?",
			Tools: []llm.ToolDef{{
				Name: "best_language_to_learn", Description: "Gets the best language to learn",
				Schema: json.RawMessage(`{"type":"object","properties":{},"required":[],"additionalProperties":false,"strict":true}`),
			}},
		}, 579},
		"two and an answer by schema": {agent.Config{
			System: "Give me complete details about Tokyo",
			Tools:  []llm.ToolDef{{Name: "lookup_country", Schema: city}, {Name: "get_founded_year", Schema: city}},
			Schema: json.RawMessage(`{"additionalProperties":false,"properties":{"city":{"type":"string"},"country":{"type":"string"},` +
				`"population":{"type":"integer"}},"required":["city","country","population"],"type":"object"}`),
		}, 797},
	} {
		if r := reservations(t, newPlay(t, tt.cfg)); r[0].Input < tt.counted {
			t.Errorf("%s: %d tokens are set aside of %d", name, r[0].Input, tt.counted)
		}
	}
}

// A provider describes its own tools in words of its own.
func TestAProvidersOwnToolsAreSetAsideFor(t *testing.T) {
	without, with := reservations(t, newPlay(t, agent.Config{})), reservations(t, newPlay(t, agent.Config{ProviderTools: []string{"web_search"}}))
	if more := with[0].Input - without[0].Input; more < 1000 {
		t.Errorf("%d tokens are set aside for a tool", more)
	}
}

// A cap that was lowered to what can be paid for is what the provider is asked
// to keep to; where no budget depends on one, none is sent.
func TestALoweredOutputCapIsSent(t *testing.T) {
	// A token costs one dollar, and "do it" is at most 53 tokens.
	for name, tt := range map[string]struct {
		cfg  agent.Config
		want int
	}{
		"the owner's":                                {agent.Config{MaxTokens: 4000}, 4000},
		"what the money is for":                      {agent.Config{MaxTokens: 4000, Limits: budget.Limits{USDPerRun: 53 + 2000}}, 2000},
		"what the tokens are":                        {agent.Config{MaxTokens: 4000, Limits: budget.Limits{MaxOutputTokens: 1500}}, 1500},
		"what the money is for, without the owner's": {agent.Config{Limits: budget.Limits{USDPerRun: 53 + 2000}}, 2000},
		"what the tokens are, without the owner's":   {agent.Config{Limits: budget.Limits{MaxOutputTokens: 1500}}, 1500},
		"none":                          {agent.Config{}, 0},
		"none, for a model of no price": {agent.Config{Targets: []agent.Target{{Model: "m/free"}}, Limits: budget.Limits{USDPerRun: 53 + 2000}}, 0},
	} {
		if got := newPlay(t, tt.cfg).call.Request.MaxTokens; got != tt.want {
			t.Errorf("%s: %d are asked for, want %d", name, got, tt.want)
		}
	}
}

// What one model counted bounds what another will only loosely: its tokens are
// others. What is known is taken twice.
func TestAnotherModelsCountIsTakenTwice(t *testing.T) {
	price := &llm.Price{Input: 1, Output: 1}
	p := newPlay(t, agent.Config{Targets: []agent.Target{{Model: "m/a", Price: price}, {Model: "m/b", Price: price}}})
	p.answer(asks("", "read a"))
	p.results("c1.1=" + strings.Repeat("long ", 4000))
	p.answer(used(1000, 1, asks("", "read b")))
	p.results("c2.1=B")
	same := reservations(t, p)
	p.breaks(llm.ClassOverloaded)
	p.after(1e9)
	other := reservations(t, p)
	a, b := same[len(same)-1].Input, other[len(other)-1].Input
	if p.call.Target != "m/b" || b-a < 1000 || b-a > 1200 {
		t.Errorf("%s: %d tokens are set aside after %d for the model that counted 1000", p.call.Target, b, a)
	}
}

func reservations(t *testing.T, p *play) []event.BudgetReserved {
	t.Helper()
	var all []event.BudgetReserved
	for _, body := range p.journal {
		e, err := event.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Data.(event.BudgetReserved); ok {
			all = append(all, d)
		}
	}
	return all
}

// The cost of a run is that of every call that it made: its answers, what
// failed and was charged, its summaries, and what broke off without a word.
//
// rows: ALF-78
func TestTheCostIsThatOfTheWholeRun(t *testing.T) {
	cfg := windowed(compact.Settings{Strategy: compact.SummarizeOlder})
	p := newPlay(t, cfg) // a dollar for every token
	paid := func(usd float64) func(*event.ModelAttemptFailed) {
		return func(f *event.ModelAttemptFailed) {
			f.Usage, f.Cost = llm.Usage{Input: int64(usd)}, llm.Cost{USD: usd, Priced: true}
		}
	}
	p.breaks(llm.ClassOverloaded, paid(100))
	p.after(1e9)
	p.work(30)
	turns := p.cycle
	p.breaks(llm.ClassOverloaded, paid(1000))
	p.after(1e9)
	p.answer(used(10_000, 0, says("what happened")))
	p.crash()
	p.resume()
	lost := reservations(t, p)
	p.answer(says("done"))
	reserved := lost[len(lost)-2]
	want := 100 + float64(turns)*3 + 1000 + 10_000 + float64(reserved.Input+reserved.Output) + 3
	if o := p.outcome(); o.Cost == nil || o.Cost.USD != want || !o.Cost.Priced {
		t.Errorf("cost %+v, want %v", o.Cost, want)
	}
	p.check()
}
