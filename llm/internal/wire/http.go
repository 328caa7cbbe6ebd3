package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// DefaultIdle is how long a stream may be silent before it counts as stalled.
// Every byte counts, comments and pings too (FIELD F20).
const DefaultIdle = 5 * time.Minute

// ErrIdle is the cause when a connection was silent for too long.
var ErrIdle = errors.New("no byte arrived for too long")

// Client posts requests of one provider. It is safe for concurrent use.
type Client struct {
	// Provider names the provider in errors.
	Provider string
	// HTTP is the transport; see [NewHTTP] and [WithoutRedirects].
	HTTP *http.Client
	// Idle bounds silence; 0 means [DefaultIdle].
	Idle time.Duration
	// RequestIDs are the response headers that may name the exchange.
	RequestIDs []string
}

// Post sends a body and returns the answer when its status is 2xx. Any other
// outcome is an *llm.Error; classify may refine it from the status and body.
func (c *Client) Post(ctx context.Context, url string, header http.Header, body *llm.Encoded, classify func(*llm.Error, []byte)) (*Exchange, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	idle := c.Idle
	if idle == 0 {
		idle = DefaultIdle
	}
	watchdog := time.AfterFunc(idle, func() { cancel(ErrIdle) })
	stop := func() { watchdog.Stop(); cancel(context.Canceled) }
	var begun atomic.Bool
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, &Body{segments: body.Segments, begun: &begun})
	if err != nil {
		stop()
		return nil, &llm.Error{Class: llm.ClassInvalid, Provider: c.Provider, Message: err.Error(), Err: err}
	}
	req.Header = header
	if c.HTTP.Jar != nil {
		req.Header = header.Clone() // a jar adds its cookies to the header it is given
	}
	req.ContentLength = body.Len()
	req.GetBody = func() (io.ReadCloser, error) { return &Body{segments: body.Segments, begun: &begun}, nil }
	resp, err := c.HTTP.Do(req)
	if err != nil {
		failure := c.NetworkError(ctx, err, "")
		stop()
		if failure.Class == llm.ClassNetwork && !begun.Load() {
			unsent := *failure // the transport's own, which others may hold
			unsent.Unsent = true
			failure = &unsent
		}
		return nil, failure
	}
	x := &Exchange{
		Response: resp, RequestID: c.requestID(resp.Header), stop: stop, watchdog: watchdog, secrets: secretsOf(header),
	}
	x.Body = &watchedReader{r: resp.Body, watchdog: watchdog, idle: idle, ctx: ctx}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer x.Close()
		return nil, x.Redact(c.failure(x, classify))
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

// NetworkError classifies a failure of the connection itself. One that the
// transport has classified stays as it is.
func (c *Client) NetworkError(ctx context.Context, err error, requestID string) *llm.Error {
	if known, ok := errors.AsType[*llm.Error](err); ok {
		return known
	}
	message := err.Error()
	if cause := context.Cause(ctx); errors.Is(cause, ErrIdle) {
		message, err = "the connection stalled: "+cause.Error(), cause
	}
	return &llm.Error{Class: llm.ClassNetwork, Provider: c.Provider, Message: message, RequestID: requestID, Err: err}
}

// Broken is the error of a stream that ended before the provider said so. It
// is a failure, whatever text it left (FIELD F8, F20).
func (c *Client) Broken(x *Exchange, err error) *llm.Error {
	e := &llm.Error{Class: llm.ClassNetwork, Provider: c.Provider, RequestID: x.RequestID, Err: err}
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Message, e.Err = "the stream ended before the answer was complete", io.ErrUnexpectedEOF
	case errors.Is(err, ErrAnswerTooLarge), errors.Is(err, ErrEventTooLarge):
		// The same request is likely to run away again, at the same price.
		e.Class, e.Message = llm.ClassInvalid, "the answer was given up: "+err.Error()
	default:
		e.Message = "the stream broke: " + err.Error()
	}
	if kind := x.Response.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/html") {
		e.Message += "; the endpoint answered with a web page (" + kind + ")"
	}
	return e
}

// maxErrorBody bounds what is read of an error's body.
const maxErrorBody = 1 << 20

func (c *Client) failure(x *Exchange, classify func(*llm.Error, []byte)) *llm.Error {
	body, _ := io.ReadAll(io.LimitReader(x.Body, maxErrorBody))
	status := x.Response.StatusCode
	e := &llm.Error{Class: llm.ClassOfStatus(status), Provider: c.Provider, Status: status, RequestID: x.RequestID}
	e.RetryAfter, e.HasRetryAfter = RetryAfter(x.Response.Header, time.Now())
	if status >= 300 && status < 400 {
		e.Message = fmt.Sprintf("the endpoint redirects to %q; redirects are not followed", x.Response.Header.Get("Location"))
		return e
	}
	if classify != nil {
		classify(e, body)
	}
	if e.Message != "" {
		return e
	}
	e.Message = excerpt(strings.TrimSpace(strings.ToValidUTF8(string(body), "")))
	if e.Message == "" {
		e.Message = http.StatusText(status)
	}
	if status == http.StatusNotFound || status == http.StatusMethodNotAllowed {
		// Nobody there speaks this protocol: the base URL is wrong.
		asked := *x.Response.Request.URL
		asked.RawQuery, asked.User = "", nil
		e.Message += "; asked was " + asked.String()
	}
	return e
}

// maxRawMessage bounds what is kept of a body that is no provider's error, such
// as a proxy's page: every attempt is journalled with its message.
const maxRawMessage = 16 << 10

func excerpt(s string) string {
	if len(s) <= maxRawMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxRawMessage], "") + fmt.Sprintf("… [the first %d of %d bytes]", maxRawMessage, len(s))
}

// RetryAfter reads how long a provider asks to wait: retry-after-ms, or
// Retry-After in seconds or as a date.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return wait(ms, time.Millisecond), true
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s >= 0 {
		return wait(s, time.Second), true
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(t.Sub(now), 0), true
	}
	return 0, false
}

// maxWait bounds what a header can ask for, so that no figure overflows.
const maxWait = 100 * 365 * 24 * time.Hour

func wait(n float64, unit time.Duration) time.Duration {
	if n >= float64(maxWait/unit) {
		return maxWait
	}
	return time.Duration(n * float64(unit))
}

// maxAnswer bounds what one answer may send, events and all: a service that
// never stops must not take the process's memory. The longest answers of today
// stay far below it.
const maxAnswer = 128 << 20

// ErrAnswerTooLarge is returned for an answer beyond the bound.
var ErrAnswerTooLarge = errors.New("the answer is larger than 128 MiB")

// watchedReader puts the watchdog off with every byte that arrives, and bounds
// their number.
type watchedReader struct {
	r        io.Reader
	watchdog *time.Timer
	idle     time.Duration
	ctx      context.Context
	total    int64
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.watchdog.Reset(w.idle)
	}
	if w.total += int64(n); w.total > maxAnswer {
		return n, ErrAnswerTooLarge
	}
	if err != nil && errors.Is(context.Cause(w.ctx), ErrIdle) {
		err = ErrIdle
	}
	return n, err
}

// Body reads an encoded request piece by piece.
type Body struct {
	segments [][]byte
	at       int
	// begun, where there is one, is set when somebody begins to read.
	begun *atomic.Bool
}

// NewBody returns a reader of the whole body.
func NewBody(e *llm.Encoded) *Body { return &Body{segments: e.Segments} }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	b.begin()
	n := 0
	for len(b.segments) > 0 && n < len(p) {
		c := copy(p[n:], b.segments[0][b.at:])
		n += c
		b.at += c
		if b.at == len(b.segments[0]) {
			b.segments, b.at = b.segments[1:], 0
		}
	}
	if n == 0 && len(b.segments) == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// WriteTo implements io.WriterTo, so that the pieces are not copied twice.
func (b *Body) WriteTo(w io.Writer) (int64, error) {
	b.begin()
	var total int64
	for len(b.segments) > 0 {
		n, err := w.Write(b.segments[0][b.at:])
		total += int64(n)
		if err != nil {
			return total, err
		}
		b.segments, b.at = b.segments[1:], 0
	}
	return total, nil
}

func (b *Body) begin() {
	if b.begun != nil {
		b.begun.Store(true)
	}
}

// Close implements io.Closer.
func (b *Body) Close() error { return nil }
