package wire

import (
	"math"
	"net/http"
	"time"
)

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
