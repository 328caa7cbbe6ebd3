package wire

import (
	"time"

	"github.com/pawlrun/pawl/llm"
)

// HasCacheBreakpoints reports whether an OpenAI model caches the ends of messages
// instead of arbitrary prefixes: GPT-5.6 and later.
func HasCacheBreakpoints(model string) bool { return GPTAtLeast(model, 5, 6) }

// OpenAICacheRules returns the rules of OpenAI's own service, which both of its APIs
// share.
func OpenAICacheRules(model string) llm.CacheRules {
	if HasCacheBreakpoints(model) {
		return llm.CacheRules{Minimum: 1024, Lifetime: 30 * time.Minute, WritesReported: true}
	}
	return llm.CacheRules{Minimum: 1024, Step: 128, Lifetime: 5 * time.Minute, BestEffort: true}
}
