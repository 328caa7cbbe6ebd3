package wire

import (
	"math"
	"net/http"
	"time"
)

// NewHTTP returns the default transport. It honours the proxy variables of the
// environment and follows no redirect. A connection that served a call is kept for the
// next one, however many runs there are: a bound would close and open them in turn.
func NewHTTP() *http.Client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: math.MaxInt, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 15 * time.Second, ExpectContinueTimeout: time.Second,
	}
	return WithoutRedirects(&http.Client{Transport: t})
}

// WithoutRedirects returns the client with redirects off, because a redirected
// POST would carry the key elsewhere: net/http withholds Authorization from
// another host, not the headers that providers invented. A nil client means
// [NewHTTP]; one that has a redirect policy of its own keeps it.
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
