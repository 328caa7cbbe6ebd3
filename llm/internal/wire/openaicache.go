package wire

import (
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// HasCacheBreakpoints says whether an OpenAI model remembers the ends of
// messages instead of any prefix: GPT-5.6 and what came after it (FIELD 4.1).
func HasCacheBreakpoints(model string) bool {
	version, ok := strings.CutPrefix(strings.TrimPrefix(strings.ToLower(model), "ft:"), "gpt-")
	if !ok {
		return false
	}
	if end := strings.IndexFunc(version, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); end >= 0 {
		version = version[:end]
	}
	major, minor, _ := strings.Cut(version, ".")
	x, err := strconv.Atoi(major)
	y, _ := strconv.Atoi(minor)
	return err == nil && (x > 5 || x == 5 && y >= 6)
}

// OpenAICacheRules are the rules of OpenAI's own service, which both of its
// APIs share.
func OpenAICacheRules(model string) llm.CacheRules {
	if HasCacheBreakpoints(model) {
		return llm.CacheRules{Minimum: 1024, Lifetime: 30 * time.Minute, WritesReported: true}
	}
	return llm.CacheRules{Minimum: 1024, Step: 128, Lifetime: 5 * time.Minute, BestEffort: true}
}
