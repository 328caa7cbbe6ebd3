// Package transport makes the HTTP clients of providers: through a proxy where
// one is named, and within the rate limits that the provider tells.
package transport

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// Options say how a provider is reached.
type Options struct {
	// Base is the client to build on; nil means the wires' own default, which
	// honours the proxy variables of the environment.
	Base *http.Client
	// Proxy, where set, replaces the environment's and that of Base.
	Proxy *url.URL
	// Limiter, where set, limits the requests. Provider names whose they are, Key
	// is the key that they are made with.
	Limiter       *Limiter
	Provider, Key string
}

// ErrNoProxy is returned for a proxy in front of a transport that takes none.
var ErrNoProxy = errors.New("transport: the client sends by a transport of its own, which takes no proxy from here; name the proxy there")

// New returns a client. Redirects are not followed unless Base has a policy of
// its own. The error is [ErrNoProxy] where requests would go past the proxy,
// because Base sends them by something else than an [*http.Transport].
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
