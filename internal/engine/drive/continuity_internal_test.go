package drive

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

// cachingModel is a model whose provider caches exactly.
type cachingModel struct{ llm.Model }

func (cachingModel) CacheRules(string, llm.Caching) (llm.CacheRules, bool) {
	return llm.CacheRules{Minimum: 1024, Lifetime: 5 * time.Minute, WritesReported: true}, true
}

// A call for a summary may have a prompt of its own; neither is it a break, nor
// is the run's next request when it goes on as before.
func TestACallBesideTheCyclesIsNoBreak(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	var c Continuity
	call := func(purpose event.Purpose, system string, u llm.Usage, sums ...uint32) *event.CacheBreak {
		now = now.Add(time.Second)
		req := &llm.Request{System: system, Encoded: &llm.Encoded{Prompt: sums}}
		told := c.Requested(&machine.CallModel{Target: "t/m", Purpose: purpose}, cachingModel{}, req)
		c.Note(&event.Event{Time: now, Data: event.ModelRequested{Model: "t/m", Purpose: purpose, Prompt: told}})
		answer := event.ModelResponse{Model: "t/m", Purpose: purpose, Usage: u}
		found := c.Check(answer)
		c.Note(&event.Event{Time: now, Data: answer})
		return found
	}
	written := llm.Usage{Input: 5000, CacheWrite: 5000}
	for i, step := range []struct {
		found  *event.CacheBreak
		breaks bool
	}{
		{call("", "s", written, 1, 10), false},
		{call(event.PurposeSummary, "sum up", llm.Usage{Input: 9000}, 2, 20), false},
		{call("", "s", llm.Usage{Input: 5100, CacheRead: 5000, CacheWrite: 100}, 1, 10, 11), false},
		{call("", "s", llm.Usage{Input: 5200, CacheWrite: 5200}, 1, 10, 11, 12), true},
	} {
		if (step.found != nil) != step.breaks {
			t.Errorf("call %d: %+v", i+1, step.found)
		}
	}
}

// roundingModel is a model whose provider does not say what it wrote.
type roundingModel struct{ llm.Model }

func (roundingModel) CacheRules(string, llm.Caching) (llm.CacheRules, bool) {
	return llm.CacheRules{Minimum: 1024, Lifetime: 5 * time.Minute}, true
}

// A prompt that is too short for the cache is no cache miss.
func TestAPromptBelowTheMinimumIsNoBreak(t *testing.T) {
	for input, breaks := range map[int64]bool{1023: false, 1024: true} {
		now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
		var c Continuity
		var found *event.CacheBreak
		for i := range uint32(2) {
			now = now.Add(time.Second)
			req := &llm.Request{System: "s", Encoded: &llm.Encoded{Prompt: []uint32{1, 10, 11 + i}[:2+i]}}
			told := c.Requested(&machine.CallModel{Target: "t/m"}, roundingModel{}, req)
			c.Note(&event.Event{Time: now, Data: event.ModelRequested{Model: "t/m", Prompt: told}})
			answer := event.ModelResponse{Model: "t/m", Usage: llm.Usage{Input: input + 100*int64(i)}}
			found = c.Check(answer)
			c.Note(&event.Event{Time: now, Data: answer})
		}
		if (found != nil) != breaks {
			t.Errorf("a prompt of %d tokens: %+v", input, found)
		}
	}
}
