package replay

import (
	"math"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

func TestFirstChangedSegmentOfARequestIsFound(t *testing.T) {
	one, two, other := llm.UserText("one"), llm.UserText("two"), llm.UserText("other")
	tools := []llm.ToolDef{{Name: "a"}}
	before := llm.Request{System: "s", Tools: tools, Messages: []*llm.Message{one, two}}
	for name, c := range map[string]struct {
		now  llm.Request
		want int
	}{
		"it continues":       {llm.Request{System: "s", Tools: tools, Messages: []*llm.Message{one, two, other}}, 0},
		"an equal message":   {llm.Request{System: "s", Tools: tools, Messages: []*llm.Message{one, llm.UserText("two")}}, 0},
		"the tools":          {llm.Request{System: "s", Tools: []llm.ToolDef{{Name: "b"}}, Messages: before.Messages}, 1},
		"the system text":    {llm.Request{System: "t", Tools: tools, Messages: before.Messages}, 2},
		"a setting":          {llm.Request{System: "s", Tools: tools, MaxTokens: 5, Messages: before.Messages}, 3},
		"the second message": {llm.Request{System: "s", Tools: tools, Messages: []*llm.Message{one, other}}, 4},
		"a shorter request":  {llm.Request{System: "s", Tools: tools, Messages: []*llm.Message{one}}, 3},
	} {
		r := requests{before: &machine.CallModel{Request: before}, asked: &machine.CallModel{Request: c.now}, messages: make([]int, len(c.now.Messages))}
		if r.describe(); r.Changed != c.want {
			t.Errorf("%s: segment %d has changed, want %d", name, r.Changed, c.want)
		}
	}
}

func TestCacheBreakBelongsToTheRequestOfItsCycle(t *testing.T) {
	r := requests{Request: Request{Cycle: 2}, asked: &machine.CallModel{}}
	for cycle, usd := range map[int]float64{1: 0.1, 2: 0.2, 3: 0.3} {
		if err := r.step(nil, &event.Event{Cycle: cycle, Data: event.CacheBreak{Segment: "tools", USD: usd}}); err != nil {
			t.Fatal(err)
		}
	}
	if r.Break == nil || r.Break.USD != 0.2 {
		t.Errorf("%+v", r.Break)
	}
}

// The cache holds a prefix of the request, so a result after that prefix costs more.
func TestChargeIsDividedByWhatTheCacheHad(t *testing.T) {
	old, new := llm.ToolResult{CallID: "c1", Name: "a", Output: "xxxx"}, llm.ToolResult{CallID: "c2", Name: "a", Output: "xxxx"}
	price := llm.Price{Input: 10, CacheRead: 1, Output: 20}
	for _, cached := range []int64{0, 500, 750, 1000} {
		usage := llm.Usage{Input: 1000, Output: 100, CacheRead: cached}
		d := division{run: "r", at: map[Share]int{}, price: &price, usage: &usage, known: map[*llm.Message][]Segment{}}
		d.segments = segmentsWith(&llm.Request{Messages: []*llm.Message{{Parts: llm.Parts{old}}, {Parts: llm.Parts{new}}}}, d.known)
		d.charge(price.Of(usage))
		want := map[string]float64{"c1": 500 * 10e-6, "c2": 500 * 10e-6, "": 100 * 20e-6}
		want["c1"] -= float64(min(cached, 500)) * 9e-6
		want["c2"] -= float64(max(cached-500, 0)) * 9e-6
		for _, s := range d.all {
			if math.Abs(s.USD-want[s.CallID]) > 1e-9 {
				t.Errorf("%d of 1000 tokens cached: %+v, want USD %.6f", cached, s, want[s.CallID])
			}
		}
		if len(d.all) != 3 {
			t.Errorf("%+v", d.all)
		}
	}
}
