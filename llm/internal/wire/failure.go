package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// NetworkError classifies a failure of the connection. It keeps a classification by the
// transport.
func (c *Client) NetworkError(ctx context.Context, err error, requestID string) *llm.Error {
	if known, ok := errors.AsType[*llm.Error](err); ok {
		return known
	}
	err = withoutCredentials(err)
	if strings.Contains(err.Error(), "failed to parse Location header") { // net/http has no error value for it
		return &llm.Error{Class: llm.ClassInvalid, Provider: c.Provider, Message: unreadableRedirect, RequestID: requestID}
	}
	message := err.Error()
	if cause := context.Cause(ctx); errors.Is(cause, ErrIdle) {
		message, err = stalled, cause
	}
	return &llm.Error{Class: llm.ClassNetwork, Provider: c.Provider, Message: message, RequestID: requestID, Err: err}
}

const stalled = "the connection stalled: no byte arrived for too long"

const unreadableRedirect = "the endpoint redirects to a place that cannot be read; redirects are not followed"

// Broken returns the error of a stream that ended before the provider's end. It is a
// failure, whatever text arrived.
func (c *Client) Broken(x *Exchange, err error) *llm.Error {
	e := &llm.Error{Class: llm.ClassNetwork, Provider: c.Provider, RequestID: x.RequestID, Err: err}
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Message, e.Err = "the stream ended before the answer was complete", io.ErrUnexpectedEOF
	case errors.Is(err, ErrIdle):
		e.Message = stalled
	case errors.Is(err, ErrAnswerTooLarge), errors.Is(err, ErrEventTooLarge), errors.Is(err, ErrArgumentsTooLarge):
		// The same request would probably run away again, at the same price.
		e.Class, e.Message = llm.ClassInvalid, "the answer was given up: "+err.Error()
	case errors.Is(err, gzip.ErrHeader):
		e.Class, e.Message = llm.ClassInvalid, "the answer calls itself compressed (Content-Encoding gzip) and is not; look at proxies on the way"
	default:
		e.Message = "the stream broke: " + err.Error()
	}
	if s, ok := errors.AsType[*StallError](err); ok {
		e.Message = s.Error()
	}
	if x.calledPage() {
		e.Message += "; the endpoint called its answer a web page (" + x.Response.Header.Get("Content-Type") + ")"
	}
	return e
}

// maxErrorBody bounds how much of an error's body is read.
const maxErrorBody = 1 << 20

func (c *Client) failure(x *Exchange) *llm.Error {
	body, _ := io.ReadAll(io.LimitReader(x.Body, maxErrorBody))
	status := x.Response.StatusCode
	e := &llm.Error{Class: llm.ClassOfStatus(status), Provider: c.Provider, Status: status, RequestID: x.RequestID}
	e.RetryAfter, e.HasRetryAfter = RetryAfter(x.Response.Header, time.Now())
	if status >= 300 && status < 400 {
		e.Message = unreadableRedirect
		switch to, err := x.Response.Location(); {
		case err == nil:
			e.Message = fmt.Sprintf("the endpoint redirects to %q; redirects are not followed", plain(*to))
		case errors.Is(err, http.ErrNoLocation):
			e.Message = "the endpoint redirects and does not say where; redirects are not followed"
		}
		return e
	}
	if c.Classify != nil {
		c.Classify(e, body)
	}
	Refine(e, body)
	if e.Message = x.excerpt(e.Message); e.Message != "" {
		return e
	}
	e.Message = x.excerpt(strings.TrimSpace(strings.ToValidUTF8(string(body), "")))
	if e.Message == "" {
		e.Message = http.StatusText(status)
	}
	if status == http.StatusNotFound || status == http.StatusMethodNotAllowed {
		// The server does not support this protocol: the base URL is wrong.
		e.Message += "; asked was " + plain(*x.Response.Request.URL)
	}
	return e
}

// Failed returns the error in an answer as classify reads it, or a general one.
func Failed(body []byte, classify func(e *llm.Error, body []byte)) *llm.Error {
	e := &llm.Error{Class: llm.ClassOverloaded}
	if classify(e, body); e.Message == "" {
		e.Message = RawMessage(body)
	}
	Refine(e, body)
	return e
}

// readQuota classifies a failure as exhausted quota if it contains OpenAI's code for
// it, which gateways use on every wire. In a quoted request the quotes around the code
// are escaped.
func readQuota(e *llm.Error, failure []byte) {
	if bytes.Contains(failure, []byte(`"insufficient_quota"`)) {
		e.Class = llm.ClassQuota
	}
}

// maxRawMessage bounds how much is kept of a body that is not a provider's error, such
// as a proxy's page: the journal contains the message of every attempt.
const maxRawMessage = 16 << 10

func excerpt(s string) string {
	if len(s) <= maxRawMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxRawMessage], "") + fmt.Sprintf("… [the first %d of %d bytes]", maxRawMessage, len(s))
}

// RawMessage returns the message of a failure without a message for people.
func RawMessage(body []byte) string {
	return "the service said: " + strings.ToValidUTF8(string(body), "\uFFFD")
}
