// Package lint holds the requests that adapters make to the rules of their
// wires, before they are sent.
package lint

import (
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/conform"
)

// Request checks the encoded messages of a request, one segment for each of
// them; name is the memo's of the encoding. What was found to be in order in the
// request before is not read again. The error is an *[llm.Error] that names the
// rule and wraps a *[conform.Violation].
func Request(w conform.Wire, provider, name string, req *llm.Request, segments []llm.Segment) error {
	if len(req.Messages) == 0 {
		return nil // not to be sent, but asked about
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

// settled is the last place, of those up to n, behind which the conversation
// owes nothing to what stands before it.
func settled(messages []*llm.Message, n int) int {
	for ; n > 0; n-- {
		if messages[n-1].Role == llm.RoleTool || n < len(messages) && messages[n].Role == llm.RoleUser && !asks(messages[n-1]) {
			return n
		}
	}
	return 0
}

// asks reports whether a message holds a call, which what follows must answer.
func asks(m *llm.Message) bool {
	for _, p := range m.Parts {
		if _, ok := p.(llm.ToolCall); ok {
			return true
		}
	}
	return false
}
