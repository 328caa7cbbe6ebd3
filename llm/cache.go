package llm

import "time"

// Caching is the lifetime that a run requests for its providers' prompt caches.
type Caching string

// The values of the setting cache; "" is [CacheShort].
const (
	// CacheShort requests the ordinary lifetime, which every read renews.
	CacheShort Caching = "5m"
	// CacheLong requests an hour, if the provider offers that. Writing costs more, so
	// it suits runs that wait between cycles.
	CacheLong Caching = "1h"
	// CacheOff asks the provider to cache nothing, if that is possible.
	CacheOff Caching = "off"
)

// CacheRules describes how a provider caches the prefix of requests to one model, as
// far as its reports show.
type CacheRules struct {
	// Minimum is the length in tokens below which nothing is cached.
	Minimum int64
	// Step is the number of tokens that a read is rounded down to; 0 if a read ends
	// exactly where an earlier request did.
	Step int64
	// Lifetime is how long a prefix is kept after its last use.
	Lifetime time.Duration
	// WritesReported reports that usage includes the tokens written. Otherwise a
	// request's whole input counts as written.
	WritesReported bool
	// BestEffort reports that the provider guarantees nothing, so a miss alone is not
	// an error of the request.
	BestEffort bool
}

// Cacher is a [Model] that knows its provider's cache rules. ok is false if the rules
// of a model are unknown or it caches nothing.
type Cacher interface {
	CacheRules(model string, asked Caching) (rules CacheRules, ok bool)
}
