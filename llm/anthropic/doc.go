// Package anthropic implements Anthropic's Messages API: it encodes requests and
// decodes answers, streamed or whole.
//
// Data that the provider needs back is kept beside the neutral form and sent back
// unchanged: thinking with its signature, encrypted thinking, citations, and the
// records of the provider's own tools. It is sent back only to the model family that
// made it and omitted for every other model.
package anthropic
