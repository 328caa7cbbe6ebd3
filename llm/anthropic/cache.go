package anthropic

import (
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// The limits of the service's cache. It refuses a fifth mark, and looks for a prefix in
// the 20 blocks before a mark. One mark is at the end of tools and system text.
// Prefixes that are too short to be cached are marked too: the service ignores such
// marks, and the number of tokens is only estimated here.
const (
	maxMarks      = 4
	messageMarks  = maxMarks - 1
	lookBackRange = 20
)

// blockEnd is the end of every encoded message: of its last block, the list, and the
// message itself.
const blockEnd = `}]}`

// mark returns the member that ends a cached part of the request, "" if nothing is to
// be cached. All marks of a request have the same lifetime, because a shorter one must
// not come before a longer one.
func (m *Model) mark(asked llm.Caching) string {
	switch {
	case !m.cache || asked == llm.CacheOff:
		return ""
	case asked == llm.CacheLong:
		return `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
	}
	return `,"cache_control":{"type":"ephemeral"}`
}

// marks chooses the messages whose last block gets a mark, based on their encoded
// forms.
func (m *Model) marks(req *llm.Request, encoded []llm.Segment) []int {
	if m.mark(req.Cache) == "" {
		return nil
	}
	return wire.PlanMarks(len(encoded), func(i int) wire.Turn {
		if len(encoded[i].Bytes) == 0 {
			return wire.Turn{}
		}
		// A part becomes at most one block.
		return wire.Turn{Answer: req.Messages[i].Role == llm.RoleAssistant, Blocks: len(req.Messages[i].Parts)}
	}, messageMarks, lookBackRange)
}

// addMarked adds a message with a mark in its last block. It does not change the cached
// encoded form, which is also used when the mark has moved on.
func addMarked(body *llm.Assembly, message llm.Segment, mark string) {
	message.Bytes = message.Bytes[:len(message.Bytes)-len(blockEnd)]
	body.Add(message)
	body.Add(llm.NewSegment([]byte(mark + blockEnd)))
}

// minimums are the lengths in tokens below which nothing is cached, by the prefix of a
// model's name.
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

// CacheRules returns the service's cache rules for a model. Nothing is cached if the
// marks are omitted.
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
