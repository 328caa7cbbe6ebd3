package wire

import (
	"sync/atomic"

	"github.com/pawlrun/pawl/llm"
)

// NameCache caches the last mapping, because a run offers the same tools with every
// request. The zero value is ready for use and safe for concurrent use.
type NameCache struct{ last atomic.Pointer[cachedNames] }

type cachedNames struct {
	limit int
	of    []string
	names *Names
}

// For is [NewNames] with a cache.
func (c *NameCache) For(tools []llm.ToolDef, limit int) *Names {
	if last := c.last.Load(); last != nil && last.fits(tools, limit) {
		return last.names
	}
	fresh := &cachedNames{limit: limit, of: make([]string, len(tools)), names: NewNames(tools, limit)}
	for i, t := range tools {
		fresh.of[i] = t.Name
	}
	c.last.Store(fresh)
	return fresh.names
}

func (c *cachedNames) fits(tools []llm.ToolDef, limit int) bool {
	if limit != c.limit || len(tools) != len(c.of) {
		return false
	}
	for i := range tools {
		if tools[i].Name != c.of[i] {
			return false
		}
	}
	return true
}
