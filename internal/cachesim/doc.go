// Package cachesim prices whole runs against the cache rules of the providers.
// The runs are real: the engine drives them, the adapters make the bytes, and
// what answers is an in-process transport that caches as a provider does and
// reports usage accordingly. An oracle says what could have been read:
// the longest common prefix of consecutive bodies, above the model's minimum and
// within its lifetime, compaction boundaries left out.
package cachesim
