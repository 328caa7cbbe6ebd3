package models

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// errProxy does not show the address, because it may hold a password.
var errProxy = errors.New("proxy: the address is none; it must be like http://proxy.example:3128")

// proxy reads the address of a proxy. A variable may stand for all of it, or for
// a piece; one before the "@" is a name or a password as it is, whatever signs
// it has.
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
