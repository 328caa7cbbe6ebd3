package anthropic

import (
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// The limits of the service's cache: a fifth mark is refused, and a
// prefix is looked for in the 20 blocks before a mark. One mark stands at the
// end of tools and system text. What is too short to be cached is marked all
// the same: the service then does nothing, and how many tokens a text has is
// only guessed here.
const (
	maxMarks      = 4
	messageMarks  = maxMarks - 1
	lookBackRange = 20
)

// blockEnd is how every encoded message ends: its last block, the list, the
// message itself.
const blockEnd = `}]}`

// mark is the member that ends a cached stretch of the request, "" where
// nothing shall be cached. All marks of a request ask for one lifetime, so that
// none comes before a longer one.
func (m *Model) mark(asked llm.Caching) string {
	switch {
	case !m.cache || asked == llm.CacheOff:
		return ""
	case asked == llm.CacheLong:
		return `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
	}
	return `,"cache_control":{"type":"ephemeral"}`
}

// marks chooses the messages whose last block ends a cached stretch, by the
// encoded forms that they have.
func (m *Model) marks(req *llm.Request, encoded []llm.Segment) []int {
	if m.mark(req.Cache) == "" {
		return nil
	}
	return wire.PlanMarks(len(encoded), func(i int) wire.Turn {
		if len(encoded[i].Bytes) == 0 {
			return wire.Turn{}
		}
		// A part becomes one block or none.
		return wire.Turn{Answer: req.Messages[i].Role == llm.RoleAssistant, Blocks: len(req.Messages[i].Parts)}
	}, messageMarks, lookBackRange)
}

// addMarked puts the mark into a message's last block without touching its
// encoded bytes: they are memoised, and are the same when the mark moves on.
func addMarked(body *llm.Assembly, message llm.Segment, mark string) {
	message.Bytes = message.Bytes[:len(message.Bytes)-len(blockEnd)]
	body.Add(message)
	body.Add(llm.NewSegment([]byte(mark + blockEnd)))
}

// minimums are the lengths in tokens below which nothing is cached, by the
// beginning of a model's name.
var minimums = []minimum{
	{"claude-opus-5", 512}, {"claude-fable-5", 512}, {"claude-mythos-5", 512},
	{"claude-haiku-4-5", 4096}, {"claude-opus-4-5", 4096}, {"claude-opus-4-6", 4096},
	{"claude-3-haiku", 4096}, {"claude-3-5-haiku", 2048},
	{"claude-", 1024},
}

type minimum struct {
	family string
	tokens int64
}

// CacheRules says how the service caches for a model. Nothing is cached where
// the marks are left out.
func (m *Model) CacheRules(model string, asked llm.Caching) (llm.CacheRules, bool) {
	if m.mark(asked) == "" {
		return llm.CacheRules{}, false
	}
	at := slices.IndexFunc(minimums, func(of minimum) bool { return strings.HasPrefix(model, of.family) })
	if at < 0 {
		return llm.CacheRules{}, false
	}
	lifetime := 5 * time.Minute
	if asked == llm.CacheLong {
		lifetime = time.Hour
	}
	return llm.CacheRules{Minimum: minimums[at].tokens, Lifetime: lifetime, WritesReported: true}, true
}

var _ llm.Cacher = (*Model)(nil)
