// Package compact says when a conversation has grown too long for the model's
// window, and how it is made shorter without losing its thread: which messages
// leave, which stay, and what stands in their place.
//
// It is pure. What it decides becomes the event history.compressed, and
// [Apply] makes of that event and the conversation before it the conversation
// after it: the same on every fold, whatever rule led to it.
package compact
