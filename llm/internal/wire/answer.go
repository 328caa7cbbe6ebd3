package wire

import (
	"bytes"
	"compress/gzip"
	"errors"
	"mime"

	"github.com/pawlrun/pawl/llm"
)

// Answer builds a response from what a service sends, and emits it to listeners. An
// *llm.Error that it returns was sent by the service; any other error is a broken
// answer.
type Answer interface {
	// Events reads a stream up to its end. Neither the reader nor what it gave
	// may be kept: others use them afterwards.
	Events(events *EventReader) error
	// DecodeBody reads an answer that came in one piece.
	DecodeBody(body []byte) error
	// Begun reports whether anything of an answer has come, even what cannot be
	// trusted.
	Begun() bool
	// Response is what has come. Of an answer that did not come to its end it
	// holds only what can be trusted to be complete.
	Response(complete bool) *llm.Response
}

// Read reads the answer of an exchange and closes it. It recognizes a whole answer
// by its bytes, not by the request or the Content-Type: some services do not stream
// even on request, and some proxies drop or rewrite the type. An error comes with
// what had arrived before it.
func (c *Client) Read(x *Exchange, a Answer) (*llm.Response, error) {
	defer x.Close()
	if mediaType, _, _ := mime.ParseMediaType(x.Response.Header.Get("Content-Type")); mediaType == "text/event-stream" {
		x.silence.begin()
	}
	whole, err := x.IsJSON()
	if errors.Is(err, gzip.ErrHeader) {
		return a.Response(false), c.Broken(x, err) // it may be an answer, and have been paid for
	}
	if err != nil {
		return nil, c.Broken(x, err)
	}
	spoken, silent := whole, false
	if whole {
		x.silence.end() // it came as a stream by its type only
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
			resp = nil // an error and no answer: the call was declined, as by the status that says the same
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
		return nil, e // as an error without a word, and not as one that broke
	}
	if len(resp.Parts) > 0 && !x.lines || !x.foreign(spoken) {
		return resp, c.Broken(x, err)
	}
	if !x.opaque() {
		resp = nil // another server answered in the provider's place, and nothing is charged for it
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

// distinguish takes from a call the id that another one of the answer has
// already, so that ours goes to the service in its place: it would refuse a
// conversation in which two calls cannot be told apart.
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
