package drive

import (
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

// Continuity checks that a provider's cache contains what the run paid for: each
// request should read what the previous one read and wrote. The expectation is folded
// from the run's events, so that it is the same after a restart; a finding is an event,
// and is never evaluated again.
type Continuity struct {
	// sent is the prompt of the last request, at the time of its intent.
	sent   prompt
	sentAt time.Time
	// held is what the provider's cache should contain; nil if unknown.
	held *held

	// The state of the current request.
	rules llm.CacheRules
	known bool
	price *llm.Price
}

// held is what the last answered request left in a provider's cache.
type held struct {
	model  string
	prompt prompt
	usage  llm.Usage
	at     time.Time
}

// Requested records the request that is about to be journalled and returns the
// description of its prompt for the intent; nil if the provider's cache rules are
// unknown.
func (c *Continuity) Requested(a *machine.CallModel, model llm.Model, req *llm.Request) *event.PromptSums {
	c.price, c.known = a.Price, false
	cacher, ok := model.(llm.Cacher)
	if !ok || a.Purpose != "" || len(req.Encoded.Prompt) == 0 {
		return nil
	}
	if c.rules, c.known = rulesOf(cacher, req); !c.known {
		return nil
	}
	p := sumPrompt(req, &c.sent)
	return p.since(&c.sent)
}

// rulesOf returns a provider's rules for a request, none if the adapter panics.
func rulesOf(cacher llm.Cacher, req *llm.Request) (rules llm.CacheRules, known bool) {
	defer func() {
		if recover() != nil {
			known = false
		}
	}()
	return cacher.CacheRules(req.Model, req.Cache)
}

// Note folds an event. A call outside the cycles, such as one for a summary, has a
// separate prompt and does not affect the comparison.
func (c *Continuity) Note(e *event.Event) {
	switch d := e.Data.(type) {
	case event.ModelRequested:
		if d.Purpose != "" {
			return
		}
		c.sentAt = e.Time
		if d.Prompt == nil {
			c.sent, c.held = prompt{}, nil
			return
		}
		c.sent = follow(c.sent, d.Prompt)
	case event.ModelResponse:
		if d.Purpose != "" {
			return
		}
		c.held = nil
		if !d.Usage.Estimated && d.Usage.Input > 0 && c.sent.total > 0 {
			c.held = &held{model: d.Model, prompt: c.sent, usage: d.Usage, at: c.sentAt}
		}
	case event.HistoryCompressed:
		// The request after a compaction is expected to differ.
		c.held = nil
	case event.RunForked:
		// A fork may change what it continues from, and may begin at any time.
		c.sent, c.held = prompt{}, nil
	}
}

// slack is the least tolerance, in tokens, for reading less than expected; providers
// count a few tokens for the frame of a request.
const slack = 64

// Check compares the cache reads in an answer's usage with what the previous request
// left in the cache. It returns what is missing, or nil.
func (c *Continuity) Check(data event.Data) *event.CacheBreak {
	answer, ok := data.(event.ModelResponse)
	if !ok || !c.known || c.held == nil || c.held.model != answer.Model || answer.Usage.Estimated || answer.Usage.Input == 0 {
		return nil
	}
	// A provider measures from the last use, which was not before the intent.
	if c.sentAt.Sub(c.held.at) > c.rules.Lifetime {
		return nil
	}
	expected := min(c.expected(), answer.Usage.Input)
	missing := expected - answer.Usage.CacheRead
	if expected < c.rules.Minimum || missing <= max(slack, 2*c.rules.Step, expected/100) {
		return nil
	}
	segment := c.sent.changed(&c.held.prompt)
	if segment == "" {
		if c.rules.BestEffort && missing <= expected/2 {
			return nil
		}
		segment = "marker"
	}
	return &event.CacheBreak{
		Segment: segment, Guess: guess(segment), TokensRewritten: missing, USD: c.loss(answer.Usage, missing),
	}
}

// expected returns how many tokens the provider should have read.
func (c *Continuity) expected() int64 {
	u := c.held.usage
	n := u.Input
	if c.rules.WritesReported {
		n = u.CacheRead + u.CacheWrite
	}
	if c.rules.Step > 0 {
		n -= n % c.rules.Step
	}
	return n
}

// loss returns the additional cost of the missing tokens.
func (c *Continuity) loss(u llm.Usage, missing int64) float64 {
	if c.price == nil {
		return 0
	}
	whole := u
	whole.CacheRead += missing
	whole.CacheWrite = max(u.CacheWrite-missing, 0)
	whole.CacheWriteLong = min(u.CacheWriteLong, whole.CacheWrite)
	return max(c.price.Of(u)-c.price.Of(whole), 0)
}

func guess(segment string) string {
	switch segment {
	case "tools":
		return "the tools are not those of the request before"
	case "system":
		return "the system text is not that of the request before"
	case "settings":
		return "a setting of the request is not that of the request before"
	case "marker":
		return "nothing changed before the end of the last request: the provider dropped its prefix early, or did not find it"
	}
	return "this message is not the one that the request before had in its place"
}
