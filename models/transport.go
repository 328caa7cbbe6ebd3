package models

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// client returns the HTTP client of a provider, or nil where the wire's own
// will do.
func (r *Resolver) client(_, proxy string) (*http.Client, error) {
	if proxy == "" {
		return r.HTTP, nil
	}
	address, err := r.expand(proxy)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		// The address is not shown, because it may hold a password.
		return nil, errors.New("proxy: the address is none; it must be like http://proxy.example:3128")
	}
	return &http.Client{Transport: transport(http.ProxyURL(u))}, nil
}

// transport is made for few hosts and many requests at once, as the wires' own
// default is.
func transport(proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	return &http.Transport{
		Proxy: proxy, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 15 * time.Second, ExpectContinueTimeout: time.Second,
		WriteBufferSize: 32 << 10, ReadBufferSize: 16 << 10,
	}
}
