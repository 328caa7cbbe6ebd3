// Package wire holds what the wire adapters share: reading server-sent events,
// scanning and writing JSON without allocating, posting a request whose body is
// in pieces, and turning an HTTP failure into a classified error.
package wire
