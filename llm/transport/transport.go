// Package transport makes the HTTP clients of providers: through a proxy where
// one is named, and within the rate limits that the provider tells.
package transport

import (
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
	// Limiter, where set, limits the requests. Provider names whose they are.
	Limiter  *Limiter
	Provider string
}

// New returns a client. Redirects are not followed unless Base has a policy of
// its own.
func New(o Options) *http.Client {
	client := *wire.WithoutRedirects(o.Base)
	if client.Transport == nil {
		client.Transport = wire.NewHTTP().Transport
	}
	if t, ok := client.Transport.(*http.Transport); ok && o.Proxy != nil {
		t = t.Clone()
		t.Proxy = http.ProxyURL(o.Proxy)
		client.Transport = t
	}
	if o.Limiter != nil {
		client.Transport = &limited{gate: o.Limiter.gate(o.Provider), base: client.Transport}
	}
	return &client
}
