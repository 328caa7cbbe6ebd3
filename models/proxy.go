package models

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// errProxy does not contain the address, because it may contain a password.
var errProxy = errors.New("proxy: the address is none; it must be like http://proxy.example:3128")

// proxy parses the address of a proxy. A variable may be all of it, or a part; one
// before the "@" is a literal name or password, whatever characters it contains.
func (r *Resolver) proxy(text string) (*url.URL, error) {
	at := strings.LastIndexByte(text, '@') + 1
	user, err := r.expandAs(text[:at], func(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") })
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	address, err := r.expand(text[at:])
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	u, err := url.Parse(user + address)
	if err != nil || u.Host == "" {
		return nil, errProxy
	}
	return u, nil
}
