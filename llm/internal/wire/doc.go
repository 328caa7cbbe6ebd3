// Package wire contains what the adapters share: decoding server-sent events, scanning
// and writing JSON without allocating, posting a request whose body is in pieces, and
// converting HTTP failures to classified errors.
package wire
