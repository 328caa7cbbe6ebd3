package openai

import (
	"net/url"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// contentEnd is the end of every encoded user message: of its last piece of content,
// the list, and the message itself.
const contentEnd = `}]}`

// breakpoint is the member that ends a part of the request that the service caches.
const breakpoint = `,"prompt_cache_breakpoint":{"mode":"explicit"}`

// breakpoints reports whether a model accepts explicit breakpoints. Services that copy
// the API reject unknown members.
func (m *Model) breakpoints(model string) bool { return m.official && wire.HasCacheBreakpoints(model) }

// official reports whether an endpoint is OpenAI's own.
func official(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && u.Hostname() == "api.openai.com"
}

// appendCaching appends the settings of the service's cache. To turn the cache off, a
// model with breakpoints is restricted to explicit ones, and gets none. Other models
// cannot turn it off.
func (m *Model) appendCaching(b []byte, req *llm.Request) []byte {
	if req.Cache != llm.CacheOff {
		return appendMember(b, "prompt_cache_key", req.CacheKey)
	}
	if m.breakpoints(req.Model) {
		b = append(b, `,"prompt_cache_options":{"mode":"explicit"}`...)
	}
	return b
}

// pinsTask reports whether the end of the first message gets a breakpoint. The content
// before it is common to all requests of the run and to all runs that begin the same
// way; the service caches the end of a request by itself. The position is always the
// same, so the bytes of the prefix never change.
func (m *Model) pinsTask(req *llm.Request) bool {
	return req.Cache != llm.CacheOff && m.breakpoints(req.Model) && len(req.Messages) > 0 && req.Messages[0].Role == llm.RoleUser
}

// addPinned adds the first message with a breakpoint in its last piece of content. It
// does not change the cached encoded form. It drops the message's leading comma,
// because nothing precedes the message.
func addPinned(body *llm.Assembly, first llm.Segment) {
	first.Bytes = first.Bytes[1 : len(first.Bytes)-len(contentEnd)]
	body.Add(first)
	body.Add(llm.NewSegment([]byte(breakpoint + contentEnd)))
}

// CacheRules returns OpenAI's cache rules for a model; the rules of services that copy
// the API are unknown.
func (m *Model) CacheRules(model string, asked llm.Caching) (llm.CacheRules, bool) {
	if !m.official || asked == llm.CacheOff && wire.HasCacheBreakpoints(model) {
		return llm.CacheRules{}, false
	}
	return wire.OpenAICacheRules(model), true
}

var _ llm.Cacher = (*Model)(nil)
