package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
)

// guarded passes on only requests that were meant for the server, with the
// principal of each. It checks this before it reads anything else of a request, and
// reads nothing from an address that sends too many.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here, there, err := s.connection(r)
		if err == nil {
			err = s.checkOrigin(r, here)
		}
		done := func() {}
		if err == nil {
			r, done, err = s.identified(r, there)
		}
		defer done()
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// connection returns the ends of a request's connection, unless its address sends too many
// requests or must not be served.
func (s *Server) connection(r *http.Request) (here, there netip.AddrPort, err error) {
	if here, there, err = s.endsOf(r); err == nil {
		if wait := s.limiter.take("from "+there.Addr().String(), ofAddress(), time.Now()); wait > 0 {
			err = tooMany(wait)
		}
	}
	return here, there, err
}

// limited passes on the requests of other servers, which prove themselves without a
// token, until the server closes.
func (s *Server) limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait := s.limiter.take("from "+hostOf(r.RemoteAddr), ofAddress(), time.Now()); wait > 0 {
			s.refuse(w, r, tooMany(wait))
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.running, cancel)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// identified returns a request with its principal: that of its token, or an empty
// one without a token. A server without tokens uses its own user, unauthenticated.
// A request in a session of Socket.IO has the principal of the session.
func (s *Server) identified(r *http.Request, there netip.AddrPort) (_ *http.Request, done func(), err error) {
	p, ctx, done := event.Principal{Name: s.user.Name, Role: s.user.Role, Proof: event.ProofNone}, r.Context(), func() {}
	given, has := r.Header["Authorization"]
	if s.keys != nil {
		p = s.sockets.principal(r)
	}
	if s.keys != nil && has {
		var within context.Context
		p, within, done, err = s.bearer(ctx, given)
		if err == nil {
			ctx = within
		}
	}
	who, allowed := limitKey(p, there.Addr().String())
	if wait := s.limiter.take(who, allowed, time.Now()); wait > 0 {
		err = tooMany(wait)
	}
	return r.WithContext(context.WithValue(ctx, principalKey{}, p)), done, err
}

// longestToken bounds the token that is hashed for a comparison.
const longestToken = 512

// bearer returns the principal of the Authorization header. The context ends when
// the token is revoked.
func (s *Server) bearer(ctx context.Context, given []string) (p event.Principal, within context.Context, done func(), err error) {
	scheme, token, _ := strings.Cut(given[0], " ")
	if strings.EqualFold(scheme, "Bearer") && len(given) == 1 && len(token) <= longestToken {
		if p, within, done, ok := s.keys.admit(ctx, token); ok {
			return p, within, done, nil
		}
	}
	return p, ctx, func() {}, kindToken.problem(sendToken, "the token does not count")
}

// limitKey returns the rate-limit key and the allowance of a principal.
func limitKey(p event.Principal, address string) (who string, allowed rate) {
	known, unknown := rates()
	if p.Name == "" {
		return "address " + address, unknown
	}
	return string(p.Proof) + " " + p.Name, known
}

// tooMany returns the problem of a client that must wait.
func tooMany(wait time.Duration) *Problem {
	p := kindBusy.problem("wait as long as the header Retry-After says", "there were too many requests; the next is answered in %s", wait)
	p.retryAfter = wait
	return p
}

// principalKey is the context key of a request's principal.
type principalKey struct{}

// principalOf returns the principal that the guard found, or an empty one.
func principalOf(ctx context.Context) event.Principal {
	p, _ := ctx.Value(principalKey{}).(event.Principal)
	return p
}

// refuse answers a request that its principal may not make.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	s.log.Warn("request refused", "method", r.Method, "path", r.URL.Path, "remote", r.RemoteAddr, "principal", principalOf(r.Context()).Name, "reason", err)
	p := principalOf(r.Context())
	if s.limiter.take("refused "+p.Name+" "+hostOf(r.RemoteAddr), refusals(), time.Now()) == 0 {
		s.audit(r, problemOf(err).Status, control.Plain(err))
	}
	s.fail(w, r, err)
}

// hostOf returns an address without its port.
func hostOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}

// endsOf returns the two ends of a request's connection.
func (s *Server) endsOf(r *http.Request) (here, there netip.AddrPort, err error) {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return here, there, kindForbidden.problem("connect by TCP", "the connection cannot be told")
	}
	here, err = netip.ParseAddrPort(local.String())
	if err == nil {
		there, err = netip.ParseAddrPort(r.RemoteAddr)
	}
	here, there = unmapped(here), unmapped(there)
	if err != nil || !s.wide && (!here.Addr().IsLoopback() || !there.Addr().IsLoopback()) {
		return here, there, kindForbidden.problem("connect from this machine, by its loopback address",
			"the connection comes from %s to %s; without a file of tokens only this machine is served", r.RemoteAddr, local)
	}
	return here, there, nil
}

// unmapped returns an address without the IPv6 form of an IPv4 address.
func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// checkOrigin rejects requests from web pages of other origins (CSRF), and requests
// that use a host name that is not the server's (DNS rebinding).
func (s *Server) checkOrigin(r *http.Request, here netip.AddrPort) error {
	const next = "use the address that the server printed when it started"
	if !s.isOwnHost(r.Host, here) {
		return kindForbidden.problem(next, "the Host is %q, which is no name of this server", r.Host)
	}
	if origins, given := r.Header["Origin"]; given && (len(origins) != 1 || origins[0] != s.scheme+"://"+r.Host) {
		return kindForbidden.problem(next, "the request comes from the origin %q, another one than this server's", origins)
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case site == "", site == "same-origin", site == "none":
		return nil
	case r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate": // a link to the page, which holds no data
		return nil
	default:
		return kindForbidden.problem(next, "the request was made by a page of another site (Sec-Fetch-Site: %q)", site)
	}
}

// isOwnHost reports whether a Host is the address of the connection, localhost for
// a loopback address, or a configured name.
func (s *Server) isOwnHost(host string, here netip.AddrPort) bool {
	if slices.ContainsFunc(s.hosts, func(own string) bool { return strings.EqualFold(own, host) }) {
		return true
	}
	port := strconv.Itoa(int(here.Port()))
	names := append([]string{here.Addr().String()}, s.hosts...)
	if here.Addr().IsLoopback() {
		names = append(names, "localhost")
	}
	for _, own := range names {
		if strings.EqualFold(host, net.JoinHostPort(own, port)) {
			return true
		}
		if here.Port() == 80 && (strings.EqualFold(host, own) || host == "["+own+"]") {
			return true
		}
	}
	return false
}
