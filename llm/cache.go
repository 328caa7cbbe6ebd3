package llm

import "time"

// Caching is what a run asks of its providers' prompt caches.
type Caching string

// The values of the setting cache; "" is [CacheShort].
const (
	// CacheShort asks for the ordinary lifetime, which every read renews.
	CacheShort Caching = "5m"
	// CacheLong asks for an hour where a provider offers that. Writing costs
	// more, so it pays for runs that wait between cycles.
	CacheLong Caching = "1h"
	// CacheOff asks for nothing to be cached where a provider can be told.
	CacheOff Caching = "off"
)

// CacheRules is how a provider caches the prefix of requests to one model
// (FIELD 4.1), as far as it can be told from what it reports.
type CacheRules struct {
	// Minimum is the length in tokens below which nothing is cached.
	Minimum int64
	// Step is the number of tokens that what is read is rounded down to; 0
	// where it ends exactly where an earlier request did.
	Step int64
	// Lifetime is how long a prefix is kept after its last use.
	Lifetime time.Duration
	// WritesReported says that usage tells what was written. Where it does
	// not, a request's whole input counts as written.
	WritesReported bool
	// BestEffort says that the provider caches what it can and promises
	// nothing, so that a miss alone is no one's fault.
	BestEffort bool
}

// Cacher is a [Model] that knows its provider's cache rules. ok is false for a
// model of which nothing is known, and where nothing is cached.
type Cacher interface {
	CacheRules(model string, asked Caching) (rules CacheRules, ok bool)
}
