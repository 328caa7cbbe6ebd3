// Package wiregate is the test harness of the wire adapters. It replays real
// provider traffic, kept beside a checkout in ../shared/fixtures, against an
// adapter and holds what the adapter made of it against what independent
// readers of the same bytes agree on.
//
// There are four gates. The wire gate compares decoded answers, however their
// bytes are cut. The request gate feeds recorded answers and tool results back
// and compares the next request by meaning. The loop gate runs whole recorded
// tool loops through the real engine. The fault gate cuts and damages streams.
//
// An adapter's tests describe it as an [Adapter] and call the gates. Each
// prints one line with what passed, failed and was skipped. Where there are no
// fixtures, as in a plain clone, a gate skips and says so.
package wiregate
