package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strconv"
)

// Admit says whether the process at the other end of a loopback connection may
// speak to the server; the error says why not.
type Admit func(ctx context.Context, there, here netip.AddrPort) error

// guarded lets only those requests through that come from the server's own user
// and were meant for it. Nothing of a request is looked at before.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here, there, err := endsOf(r)
		if err == nil {
			err = s.admit(r.Context(), there, here)
		}
		if err == nil {
			err = meantFor(r, here)
		}
		if err != nil {
			s.log.Warn("request refused", "method", r.Method, "path", r.URL.Path, "remote", r.RemoteAddr, "reason", err)
			s.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// endsOf are the two ends of a request's connection.
func endsOf(r *http.Request) (here, there netip.AddrPort, err error) {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return here, there, kindForbidden.problem("connect by TCP", "the connection cannot be told")
	}
	here, err = netip.ParseAddrPort(local.String())
	if err == nil {
		there, err = netip.ParseAddrPort(r.RemoteAddr)
	}
	here, there = unmapped(here), unmapped(there)
	if err != nil || !here.Addr().IsLoopback() || !there.Addr().IsLoopback() {
		return here, there, kindForbidden.problem("connect from this machine, by its loopback address",
			"the connection comes from %s to %s; without tokens only this machine is served", r.RemoteAddr, local)
	}
	return here, there, nil
}

// unmapped is an address without the IPv6 form of an IPv4 address.
func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// meantFor refuses requests that a web page of another origin makes (CSRF), and
// those that reached this server by somebody else's name for it (DNS
// rebinding).
func meantFor(r *http.Request, here netip.AddrPort) error {
	const next = "use the address that the server printed when it started"
	if !isOwnHost(r.Host, here) {
		return kindForbidden.problem(next, "the Host is %q, which is no name of this server", r.Host)
	}
	if origins, given := r.Header["Origin"]; given && (len(origins) != 1 || origins[0] != "http://"+r.Host) {
		return kindForbidden.problem(next, "the request comes from the origin %q, another one than this server's", origins)
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
		return nil
	default:
		return kindForbidden.problem(next, "the request was made by a page of another site (Sec-Fetch-Site: %q)", site)
	}
}

// isOwnHost says that a Host is the address that was connected to, or localhost.
func isOwnHost(host string, here netip.AddrPort) bool {
	port := strconv.Itoa(int(here.Port()))
	for _, own := range []string{here.Addr().String(), "localhost"} {
		if host == net.JoinHostPort(own, port) {
			return true
		}
		if here.Port() == 80 && (host == own || host == "["+own+"]") {
			return true
		}
	}
	return false
}
