package wire

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// Client posts requests to one provider. It is safe for concurrent use.
type Client struct {
	// Provider names the provider in errors.
	Provider string
	// HTTP is the transport; see [NewHTTP] and [WithoutRedirects].
	HTTP *http.Client
	// Idle bounds the time without data; 0 means [DefaultIdle].
	Idle time.Duration
	// RequestIDs are the response headers that may contain the id of the exchange.
	RequestIDs []string
	// Classify refines the error of an answer whose status is not 2xx, from its status
	// and body; nil keeps the class of the status.
	Classify func(e *llm.Error, body []byte)
}

// Ask makes one exchange: it posts a request and decodes its answer. An error comes
// with the data that arrived before it.
func (c *Client) Ask(ctx context.Context, url string, header http.Header, request *llm.Encoded, a Answer) (*llm.Response, error) {
	x, err := c.Post(ctx, url, header, request)
	if err != nil {
		return nil, err
	}
	return c.Read(x, a)
}

// Post sends a request and returns the answer if its status is 2xx. Any other outcome
// is an *llm.Error.
func (c *Client) Post(ctx context.Context, url string, header http.Header, request *llm.Encoded) (*Exchange, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	idle := c.Idle
	if idle == 0 {
		idle = DefaultIdle
	}
	watchdog := time.AfterFunc(idle, func() { cancel(ErrIdle) })
	silence := &stall{after: stallTimeout(ctx), cancel: cancel}
	stop := func() { watchdog.Stop(); silence.end(); cancel(context.Canceled) }
	var begun atomic.Bool
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, &body{segments: request.Segments, begun: &begun})
	if err != nil {
		stop()
		err = withoutCredentials(err)
		return nil, &llm.Error{Class: llm.ClassInvalid, Provider: c.Provider, Message: err.Error(), Err: err}
	}
	req.Header = header
	if c.HTTP.Jar != nil {
		req.Header = header.Clone() // a cookie jar changes the header
	}
	req.ContentLength = request.Len()
	req.GetBody = func() (io.ReadCloser, error) { return &body{segments: request.Segments, begun: &begun}, nil }
	resp, err := c.HTTP.Do(req)
	if err != nil {
		failure := c.NetworkError(ctx, err, "")
		stop()
		if failure.Class == llm.ClassNetwork && !begun.Load() {
			unsent := *failure // the transport's error, which may be shared
			unsent.Unsent = true
			failure = &unsent
		}
		return nil, failure
	}
	x := &Exchange{Response: resp, stop: stop, watchdog: watchdog, silence: silence, asked: header, address: req.URL}
	x.RequestID = x.redact(c.requestID(resp.Header))
	x.Body = &watchedReader{r: resp.Body, watchdog: watchdog, idle: idle, ctx: ctx}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer x.Close()
		return nil, x.Redact(c.failure(x))
	}
	return x, nil
}

func (c *Client) requestID(h http.Header) string {
	for _, name := range c.RequestIDs {
		if id := h.Get(name); id != "" {
			return id
		}
	}
	return ""
}
