package mcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// carrier sends the requests of a session.
type carrier struct {
	base    http.RoundTripper
	headers map[string]string
	login   *Login
	// unauthorized is what to do about a status of 401 without a login.
	unauthorized string
}

// RoundTrip implements [http.RoundTripper].
func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	base := c.base
	if base == nil {
		base = http.DefaultTransport
	}
	ctx := r.Context()
	r = r.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { noteSent(ctx) }}))
	for name, value := range c.headers {
		r.Header.Set(name, value)
	}
	// A transport would repeat a request with such a header.
	r.Header.Del("Idempotency-Key")
	r.Header.Del("X-Idempotency-Key")
	answer, err := c.login.carry(base, r)
	if err == nil && c.login == nil && answer.StatusCode == http.StatusUnauthorized {
		noteRefused(ctx)
		_ = answer.Body.Close()
		message := "the server answered 401 Unauthorized"
		if c.unauthorized != "" {
			message += "; " + c.unauthorized
		}
		return nil, &tool.Error{Type: event.ErrorUnavailable, NothingCame: true, Message: message}
	}
	if err == nil && !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		answer.Body = &bounded{ReadCloser: answer.Body, left: maxFrame}
	}
	if err == nil {
		answer.Body = &tasking{Closer: answer.Body, in: bufio.NewReaderSize(answer.Body, 64<<10)}
	}
	return answer, err
}

// bounded is the body of one message.
type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		if n, err := b.ReadCloser.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		return 0, fmt.Errorf("the answer has more than %d MiB", maxFrame>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

type sentKey struct{}

// withSent returns a context and a value that is set when a byte of the context's
// request has been written.
func withSent(ctx context.Context) (context.Context, *atomic.Bool) {
	sent := new(atomic.Bool)
	return context.WithValue(ctx, sentKey{}, sent), sent
}

// noteRefused notes that the server did not apply what was written.
func noteRefused(ctx context.Context) {
	if sent, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
		sent.Store(false)
	}
}

func noteSent(ctx context.Context) {
	if sent, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
		sent.Store(true)
	}
}
