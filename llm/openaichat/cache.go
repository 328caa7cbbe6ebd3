package openaichat

import (
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// CacheRules returns OpenAI's cache rules for a model; the rules of services that copy
// the API are unknown. The cache cannot be turned off.
func (m *Model) CacheRules(model string, _ llm.Caching) (llm.CacheRules, bool) {
	if !m.profile.CacheKey {
		return llm.CacheRules{}, false
	}
	return wire.OpenAICacheRules(model), true
}

var _ llm.Cacher = (*Model)(nil)
