// Package lint checks the requests of adapters against the rules of their wires before
// they are sent.
package lint

import (
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/conform"
)

// Request checks the encoded messages of a request, one segment for each message; name
// is the memo's name of the encoding. It does not check again what was valid in the
// previous request. The error is an *[llm.Error] that names the rule and wraps a
// *[conform.Violation].
func Request(w conform.Wire, provider, name string, req *llm.Request, segments []llm.Segment) error {
	if len(req.Messages) == 0 {
		return nil // the request is only encoded, not sent
	}
	from := settled(req.Messages, req.Memo.Unchanged(name, req.Messages))
	o := conform.Options{Model: req.Model, Continued: from > 0}
	pieces := make([]conform.Items, 0, len(segments)-from)
	for _, s := range segments[from:] {
		if len(s.Bytes) > 0 {
			pieces = append(pieces, conform.Read(w, s.Bytes))
		}
	}
	if len(pieces) == 0 && from > 0 {
		return nil
	}
	if err := conform.Check(w, o, pieces...); err != nil {
		return &llm.Error{
			Class: llm.ClassInvalid, Provider: provider, Err: err,
			Message: "the request was not sent, because the service would refuse it: " + err.Error(),
		}
	}
	req.Memo.Keep(req.Messages)
	return nil
}

// settled returns the last index, at most n, after which no message depends on an
// earlier one.
func settled(messages []*llm.Message, n int) int {
	for ; n > 0; n-- {
		if messages[n-1].Role == llm.RoleTool || n < len(messages) && messages[n].Role == llm.RoleUser && !asks(messages[n-1]) {
			return n
		}
	}
	return 0
}

// asks reports whether a message contains a call, which the next message must answer.
func asks(m *llm.Message) bool {
	for _, p := range m.Parts {
		if _, ok := p.(llm.ToolCall); ok {
			return true
		}
	}
	return false
}
