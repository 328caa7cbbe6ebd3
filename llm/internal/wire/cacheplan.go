package wire

import (
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// Turn holds the properties of an encoded message that a cache plan depends on.
type Turn struct {
	// Answer reports that the message is the model's. Answers are never marked, because
	// their last block may be reasoning, which accepts no mark.
	Answer bool
	// Blocks is an upper bound on its content blocks; 0 means that the message is not
	// on the wire.
	Blocks int
}

// PlanMarks chooses the turns whose ends are marked for the provider's cache, most
// useful first and at most limit. The first mark is at the end of this request, for the
// next request to read. The second is at the end of the previous request, so that this
// one finds its cache entry however many messages are in between. The rest bridge
// sequences of messages without an answer between them that have more blocks than the
// provider searches back from a mark; an empty answer has no blocks, so the end of the
// previous request may be among them. It examines only as many turns as necessary, from
// the last one back.
func PlanMarks(turns int, turn func(i int) Turn, limit, lookBack int) []int {
	marks := make([]int, 0, max(limit, 0))
	answered, blocks, bridge, wide := true, 0, -1, false
	for i := turns - 1; i >= 0 && len(marks) < min(limit, 2); i-- {
		t := turn(i)
		switch {
		case t.Blocks == 0:
		case t.Answer:
			answered = true
		case answered:
			marks, answered = append(marks, i), false
			blocks += t.Blocks
		case len(marks) == 1:
			if blocks <= lookBack {
				bridge = i
			} else {
				wide = true
			}
			blocks += t.Blocks
		}
	}
	if wide && bridge >= 0 && len(marks) < limit {
		marks = append(marks, bridge)
	}
	return marks
}

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

// GPTAtLeast reports whether a model's name is that of a GPT of this version or a later
// one.
func GPTAtLeast(model string, major, minor int) bool {
	version, ok := strings.CutPrefix(strings.TrimPrefix(strings.ToLower(model), "ft:"), "gpt-")
	if !ok {
		return false
	}
	if end := strings.IndexFunc(version, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); end >= 0 {
		version = version[:end]
	}
	before, after, _ := strings.Cut(version, ".")
	x, err := strconv.Atoi(before)
	y, _ := strconv.Atoi(after)
	return err == nil && (x > major || x == major && y >= minor)
}
