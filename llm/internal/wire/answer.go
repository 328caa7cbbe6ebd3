package wire

import (
	"bytes"
	"compress/gzip"
	"errors"
	"mime"

	"github.com/pawlrun/pawl/llm"
)

// Answer builds a response from a service's data, and emits it to listeners. An
// *llm.Error that it returns was sent by the service; any other error means that the
// answer is broken.
type Answer interface {
	// Events decodes a stream to its end. It must not keep the reader or its results,
	// which are reused afterwards.
	Events(events *EventReader) error
	// DecodeBody decodes an answer that is not streamed.
	DecodeBody(body []byte) error
	// Begun reports whether any part of an answer has arrived, even one that cannot be
	// trusted.
	Begun() bool
	// Response returns what has arrived. For an incomplete answer it contains only
	// parts that are known to be complete.
	Response(complete bool) *llm.Response
}

// Read reads the answer of an exchange and closes it. It recognizes a whole answer by
// its bytes, not by the request or the Content-Type: some services do not stream even
// on request, and some proxies drop or rewrite the type. An error comes with the data
// that arrived before it.
func (c *Client) Read(x *Exchange, a Answer) (*llm.Response, error) {
	defer x.Close()
	if mediaType, _, _ := mime.ParseMediaType(x.Response.Header.Get("Content-Type")); mediaType == "text/event-stream" {
		x.silence.begin()
	}
	whole, err := x.IsJSON()
	if errors.Is(err, gzip.ErrHeader) {
		return a.Response(false), c.Broken(x, err) // it may be an answer that was charged
	}
	if err != nil {
		return nil, c.Broken(x, err)
	}
	spoken, silent := whole, false
	if whole {
		x.silence.end() // only its type says that it is a stream
		err = readBody(x, a)
	} else {
		spoken, silent, err = readEvents(x.Body, x.silence, a.Events)
	}
	resp := a.Response(err == nil)
	resp.RequestID = x.RequestID
	distinguish(resp.Parts)
	keepSound(resp.Parts)
	if err == nil {
		x.Finish()
		return resp, nil
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		if !a.Begun() && resp.Usage.Input == 0 && resp.Usage.Output == 0 {
			resp = nil // an error without an answer: the service refused the call, as with an error status
		}
		e.Provider, e.Message = c.Provider, x.excerpt(e.Message)
		if e.RequestID == "" {
			e.RequestID = x.RequestID
		}
		return resp, x.Redact(e)
	}
	if spoken && silent && x.ended(err) {
		e := c.Broken(x, err)
		e.Status = x.Response.StatusCode
		return nil, e // like an error without a message, not like a broken answer
	}
	if len(resp.Parts) > 0 && !x.lines || !x.foreign(spoken) {
		return resp, c.Broken(x, err)
	}
	if !x.opaque() {
		resp = nil // another server answered instead of the provider, so nothing is charged
	}
	return resp, c.notAnswered(x, err)
}

func readBody(x *Exchange, a Answer) error {
	body, err := x.ReadAll()
	body = bytes.TrimPrefix(body, []byte(byteOrderMark))
	x.lines = inLines(body)
	if err != nil {
		return err
	}
	return a.DecodeBody(body)
}

// distinguish removes the provider's id from a call if another call of the answer has
// the same one, so that ours is sent instead: the service would reject a conversation
// with ambiguous ids.
func distinguish(parts llm.Parts) {
	var first string
	var more map[string]bool
	for i, p := range parts {
		call, ok := p.(llm.ToolCall)
		switch id := call.ProviderID; {
		case !ok || id == "":
		case first == "":
			first = id
		case id == first || more[id]:
			call.ProviderID = ""
			parts[i] = call
		default:
			if more == nil {
				more = map[string]bool{}
			}
			more[id] = true
		}
	}
}

// EmitResponse emits the texts of a whole answer, once each.
func EmitResponse(r *llm.Response, emit func(llm.Delta)) {
	for i, p := range r.Parts {
		switch p := p.(type) {
		case llm.Text:
			if p.Text != "" {
				emit(llm.Delta{Kind: llm.DeltaText, Index: i, Text: p.Text})
			}
		case llm.Reasoning:
			if p.Text != "" {
				emit(llm.Delta{Kind: llm.DeltaReasoning, Index: i, Text: p.Text})
			}
		}
	}
}
