package gemini

import (
	"strings"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// CacheRules returns Google's cache rules for a model: from 2.5 on it caches
// automatically, without a guarantee and without a way to turn it off. The lifetime is
// not documented, so a short one is assumed.
func (m *Model) CacheRules(model string, _ llm.Caching) (llm.CacheRules, bool) {
	rules := llm.CacheRules{Minimum: 4096, Lifetime: 3 * time.Minute, BestEffort: true}
	switch {
	case strings.HasPrefix(model, "gemini-2.5"):
		rules.Minimum = 2048
	case strings.HasPrefix(model, "gemini-1"), strings.HasPrefix(model, "gemini-2"), !strings.HasPrefix(model, "gemini-"):
		return llm.CacheRules{}, false
	}
	return rules, true
}

var _ llm.Cacher = (*Model)(nil)
