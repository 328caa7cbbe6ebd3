// Package anthropic speaks Anthropic's Messages API: it projects a request to
// bytes and reads the answer, streamed or whole.
//
// What the provider needs back is kept beside the neutral view and echoed
// untouched: thinking with its signature, sealed thinking, citations, and
// whatever a tool of the provider's own did. It goes back only to the model
// family that made it; for any other model it is left out whole.
package anthropic
