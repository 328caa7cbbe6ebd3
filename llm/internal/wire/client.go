package wire

import (
	"cmp"
	"context"
	"io"
	"math"
	"net/http"
	"strings"
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

// body reads an encoded request piece by piece.
type body struct {
	segments [][]byte
	at       int
	// begun is set when reading begins.
	begun *atomic.Bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.begun.Store(true)
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
func (b *body) WriteTo(w io.Writer) (int64, error) {
	b.begun.Store(true)
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

// Close implements io.Closer.
func (b *body) Close() error { return nil }

// Header returns the headers of every request to a service: the adapter's own except
// empty ones, and further ones, which override them.
func Header(own, further map[string]string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"pawl"}}
	for name, value := range own {
		if value != "" {
			h.Set(name, value)
		}
	}
	for name, value := range further {
		h.Set(name, value)
	}
	return h
}

// Bearer returns the value of an Authorization header, "" without a token.
func Bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

// Accepting returns the header with an Accept value, unless it has one. It does not
// change the header, which all requests share.
func Accepting(h http.Header, kind string) http.Header {
	if h.Get("Accept") != "" {
		return h
	}
	h = h.Clone()
	h.Set("Accept", kind)
	return h
}

// NewHTTP returns the default client. It honours the proxy variables of the environment
// and follows no redirect. It keeps every idle connection for the next call, however
// many runs there are: a limit would make runs close and reopen connections.
func NewHTTP() *http.Client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: math.MaxInt, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 15 * time.Second, ExpectContinueTimeout: time.Second,
	}
	return WithoutRedirects(&http.Client{Transport: t})
}

// WithoutRedirects returns the client with redirects off, because a redirected POST
// would send the key elsewhere: net/http withholds Authorization from another host, but
// not the headers of providers. A nil client means [NewHTTP]; a client with its own
// redirect policy keeps it.
func WithoutRedirects(c *http.Client) *http.Client {
	if c == nil {
		return NewHTTP()
	}
	if c.CheckRedirect != nil {
		return c
	}
	guarded := *c
	guarded.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &guarded
}

// Endpoint returns the address of a path below a base URL. The query of either is kept:
// a gateway may expect its key there. The official SDKs disagree on a query in a base
// URL (some append the path to it, some drop it), so this works for the users of both.
func Endpoint(base, path string) string {
	base, _, _ = strings.Cut(base, "#")
	base, given, _ := strings.Cut(base, "?")
	path, own, _ := strings.Cut(path, "?")
	address := strings.TrimRight(base, "/") + path
	if query := strings.Trim(given+"&"+own, "&"); query != "" {
		address += "?" + query
	}
	return address
}

type requestKey struct{}

// For returns a context with the properties of a request that the exchange needs: the
// model, and how long its stream may send nothing.
func For(ctx context.Context, req *llm.Request) context.Context {
	return context.WithValue(ctx, requestKey{}, about{model: req.Model, stall: req.StallTimeout})
}

type about struct {
	model string
	stall time.Duration
}

// ModelOf returns the model that [For] stored, "" for none.
func ModelOf(ctx context.Context) string {
	a, _ := ctx.Value(requestKey{}).(about)
	return a.model
}

func stallTimeout(ctx context.Context) time.Duration {
	a, _ := ctx.Value(requestKey{}).(about)
	return cmp.Or(a.stall, llm.DefaultStallTimeout)
}
