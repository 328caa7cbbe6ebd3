// Package transport makes the HTTP clients for providers, with an optional proxy and
// within the rate limits that the provider reports.
package transport

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// Options describe how to reach a provider.
type Options struct {
	// Base is the client to build on; nil means the wires' own default, which
	// honours the proxy variables of the environment.
	Base *http.Client
	// Proxy, if set, replaces the proxy of the environment and that of Base.
	Proxy *url.URL
	// Limiter, if set, limits the requests. Provider and Key identify the account.
	Limiter       *Limiter
	Provider, Key string
}

// ErrNoProxy is returned if the transport does not support a proxy.
var ErrNoProxy = errors.New("transport: the client sends by a transport of its own, which takes no proxy from here; name the proxy there")

// New returns a client. It follows redirects only if Base has its own policy. The error
// is [ErrNoProxy] if requests would bypass the proxy, because the transport of Base is
// not an [*http.Transport].
func New(o Options) (*http.Client, error) {
	client := *wire.WithoutRedirects(o.Base)
	if client.Transport == nil {
		client.Transport = wire.NewHTTP().Transport
	}
	if o.Proxy != nil {
		t, ok := client.Transport.(*http.Transport)
		if !ok {
			return nil, ErrNoProxy
		}
		t = t.Clone()
		t.Proxy = http.ProxyURL(o.Proxy)
		client.Transport = t
	}
	if o.Limiter != nil {
		client.Transport = &limited{limiter: o.Limiter, account: account{provider: o.Provider, key: sha256.Sum256([]byte(o.Key))}, base: client.Transport}
	}
	return &client, nil
}
