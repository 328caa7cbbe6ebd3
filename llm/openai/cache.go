package openai

import (
	"net/url"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// contentEnd is how every encoded user message ends: its last piece of content,
// the list, the message itself.
const contentEnd = `}]}`

// breakpoint is the member that ends a stretch which the service shall keep.
const breakpoint = `,"prompt_cache_breakpoint":{"mode":"explicit"}`

// breakpoints reports whether a model takes explicit breakpoints. Services that
// copy the API refuse members that they do not know.
func (m *Model) breakpoints(model string) bool { return m.official && wire.HasCacheBreakpoints(model) }

// official reports whether an endpoint is OpenAI's own.
func official(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && u.Hostname() == "api.openai.com"
}

// appendCaching appends the settings of the service's cache. To turn it off, a
// model with breakpoints is limited to explicit ones, of which there are none.
// Other models cannot turn it off.
func (m *Model) appendCaching(b []byte, req *llm.Request) []byte {
	if req.Cache != llm.CacheOff {
		return appendMember(b, "prompt_cache_key", req.CacheKey)
	}
	if m.breakpoints(req.Model) {
		b = append(b, `,"prompt_cache_options":{"mode":"explicit"}`...)
	}
	return b
}

// pinsTask reports whether the end of the first message shall be remembered. What
// comes before it serves every request of the run, and every run that begins
// the same way; the end of a request the service remembers by itself. It is
// always the same place, so the bytes of the prefix never move.
func (m *Model) pinsTask(req *llm.Request) bool {
	return req.Cache != llm.CacheOff && m.breakpoints(req.Model) && len(req.Messages) > 0 && req.Messages[0].Role == llm.RoleUser
}

// addPinned puts the breakpoint into the first message's last piece of content and
// leaves its encoded bytes alone, which are memoised. The comma that it brings
// goes: nothing stands before it.
func addPinned(body *llm.Assembly, first llm.Segment) {
	first.Bytes = first.Bytes[1 : len(first.Bytes)-len(contentEnd)]
	body.Add(first)
	body.Add(llm.NewSegment([]byte(breakpoint + contentEnd)))
}

// CacheRules says how OpenAI caches for a model; of the services that copy the
// API nothing is known.
func (m *Model) CacheRules(model string, asked llm.Caching) (llm.CacheRules, bool) {
	if !m.official || asked == llm.CacheOff && wire.HasCacheBreakpoints(model) {
		return llm.CacheRules{}, false
	}
	return wire.OpenAICacheRules(model), true
}

var _ llm.Cacher = (*Model)(nil)
