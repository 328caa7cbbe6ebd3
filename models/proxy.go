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
	scheme, rest, _ := strings.Cut(text, "://")
	authority, path, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@')
	var user *url.Userinfo
	if at >= 0 {
		var err error
		if user, err = r.userinfo(authority[:at]); err != nil {
			return nil, err
		}
		text = scheme + "://" + authority[at+1:] + "/" + path
	}
	address, err := r.expand(text)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, errProxy
	}
	if user != nil {
		u.User = user
	}
	return u, nil
}

// userinfo reads a name and a password.
func (r *Resolver) userinfo(text string) (*url.Userinfo, error) {
	name, password, both := strings.Cut(text, ":")
	for _, piece := range []*string{&name, &password} {
		var err error
		if variable.MatchString(*piece) {
			if *piece, err = r.expand(*piece); err != nil {
				return nil, fmt.Errorf("proxy: %w", err)
			}
			continue
		}
		if *piece, err = url.PathUnescape(*piece); err != nil {
			return nil, errProxy
		}
	}
	if !both {
		return url.User(name), nil
	}
	return url.UserPassword(name, password), nil
}
