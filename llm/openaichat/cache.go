package openaichat

import (
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// CacheRules says how OpenAI caches for a model; of the services that copy the
// API nothing is known. It cannot be turned off here.
func (m *Model) CacheRules(model string, _ llm.Caching) (llm.CacheRules, bool) {
	if !m.profile.CacheKey {
		return llm.CacheRules{}, false
	}
	return wire.OpenAICacheRules(model), true
}

var _ llm.Cacher = (*Model)(nil)
