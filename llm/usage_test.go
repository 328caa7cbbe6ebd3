package llm_test

import (
	"math"
	"testing"

	"github.com/pawlrun/pawl/llm"
)

// No provider pays for caching a token. Price lists with less for writing than for
// reading, or nothing, name an additional charge: for Gemini's models the storage
// alone, for others that it is free.
func TestATokenThatIsKeptCostsNoLessThanAFreshOne(t *testing.T) {
	for name, tt := range map[string]struct {
		price llm.Price
		usage llm.Usage
		want  float64
	}{
		"dearer":         {llm.Price{Input: 3, CacheWrite: 3.75}, llm.Usage{Input: 1e6, CacheWrite: 1e6}, 3.75},
		"the same":       {llm.Price{Input: 3, CacheWrite: 3}, llm.Usage{Input: 1e6, CacheWrite: 1e6}, 3},
		"beside it":      {llm.Price{Input: 1.25, CacheWrite: 0.375}, llm.Usage{Input: 1e6, CacheWrite: 1e6}, 1.625},
		"free":           {llm.Price{Input: 0.6}, llm.Usage{Input: 1e6, CacheWrite: 1e6}, 0.6},
		"for an hour":    {llm.Price{Input: 3}, llm.Usage{Input: 1e6, CacheWrite: 1e6, CacheWriteLong: 1e6}, 6},
		"of a long call": {llm.Price{Input: 1, Long: &llm.LongPrice{Input: 2}}, llm.Usage{Input: 1e6, CacheWrite: 1e6}, 2},
		"only a part":    {llm.Price{Input: 1.25, CacheRead: 0.1}, llm.Usage{Input: 4e6, CacheRead: 2e6, CacheWrite: 1e6}, 1.25 + 0.2 + 1.25},
		"nothing at all": {llm.Price{}, llm.Usage{Input: 1e6, CacheWrite: 1e6}, 0},
	} {
		if got := tt.price.Of(tt.usage); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: USD %v, want %v", name, got, tt.want)
		}
	}
}
