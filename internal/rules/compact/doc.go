// Package compact decides when a conversation is too long for the model's window and
// how to shorten it: which messages to remove, which to keep, and what replaces the
// removed ones. The package is pure. Its decision becomes the event history.compressed,
// and [Apply] computes the new conversation from that event and the old conversation.
// Every fold therefore gives the same result, whatever rule made the decision.
package compact
