package web

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// target is a valid address to fetch.
type target struct {
	url *url.URL
	// host is the canonical name of the machine ([egress.CanonicalHost]).
	host string
	port uint16
}

// maxURL bounds an address in bytes, because a longer one probably carries data.
const maxURL = 8 << 10

// parse parses an address. Its URL is rebuilt from the parsed parts, so that later code
// cannot interpret it differently.
func parse(text string) (target, error) {
	if len(text) > maxURL {
		return target{}, fmt.Errorf("it has %d bytes, and the most is %d", len(text), maxURL)
	}
	u, err := url.Parse(text)
	if err != nil {
		return target{}, reason(err)
	}
	return check(u)
}

// reason returns an error without the address, which the model knows.
func reason(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

func check(u *url.URL) (target, error) {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return target{}, fmt.Errorf("its scheme is %q; http and https are fetched", u.Scheme)
	case u.User != nil:
		return target{}, errors.New("it carries credentials, which are not sent")
	case u.Opaque != "" || u.Hostname() == "":
		return target{}, errors.New("it names no machine")
	}
	host, err := canonical(u.Hostname())
	if err != nil {
		return target{}, err
	}
	port, err := portOf(u)
	if err != nil {
		return target{}, err
	}
	clean := &url.URL{Scheme: u.Scheme, Host: hostPort(host, u.Port()), Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery, ForceQuery: u.ForceQuery}
	return target{url: clean, host: host, port: port}, nil
}

// canonical returns the canonical name of a host; it first converts names in other
// scripts to their ASCII form.
func canonical(host string) (string, error) {
	for i := range len(host) {
		if host[i] >= 0x80 {
			ascii, err := idna.Lookup.ToASCII(host)
			if err != nil {
				return "", fmt.Errorf("%q is no host", host)
			}
			host = ascii
			break
		}
	}
	name, err := egress.CanonicalHost(host)
	if err != nil {
		return "", errors.New(strings.TrimPrefix(err.Error(), "egress: "))
	}
	return name, nil
}

func portOf(u *url.URL) (uint16, error) {
	switch text := u.Port(); {
	case text != "":
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return 0, fmt.Errorf("%q is no port", text)
		}
		return uint16(port), nil
	case u.Scheme == "http":
		return 80, nil
	}
	return 443, nil
}

func hostPort(host, port string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" {
		return host
	}
	return host + ":" + port
}
