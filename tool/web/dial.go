package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/tool"
)

// transport makes connections for one fetch; none outlives it, so that no connection is
// used that was judged for another fetch.
func (o Options) transport(proxy *url.URL) *http.Transport {
	t := &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, TLSClientConfig: o.TLS.Clone(),
		MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
	}
	if proxy != nil {
		t.Proxy, t.DialContext = http.ProxyURL(proxy), o.Dial
		return t
	}
	t.DialContext = o.dial
	return t
}

// dial connects by an address that was judged, never by the name, which could resolve
// to another address by then.
func (o Options) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := net.DefaultResolver.LookupPort(ctx, network, port)
	if err != nil {
		return nil, err
	}
	addresses, err := o.reachable(ctx, host, uint16(number))
	if err != nil {
		return nil, err
	}
	var failed error
	for i, a := range addresses {
		conn, err := o.connect(ctx, network, a.String(), len(addresses)-i)
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// connectTimeout bounds connecting to one address.
const connectTimeout = 10 * time.Second

// connect dials one of several addresses. A machine that does not answer takes only a
// share of the time, so that time remains for the next one and for the answer.
func (o Options) connect(ctx context.Context, network, address string, addresses int) (net.Conn, error) {
	share := connectTimeout
	if end, ok := ctx.Deadline(); ok {
		share = min(share, time.Until(end)/time.Duration(addresses+1))
	}
	ctx, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	return o.Dial(ctx, network, address)
}

// reachable returns the addresses of a host. All of them must be allowed: a name that
// resolves to both a public and a private machine is not trusted.
func (o Options) reachable(ctx context.Context, host string, port uint16) ([]netip.AddrPort, error) {
	found, err := o.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var addresses []netip.AddrPort
	for _, a := range found {
		to := netip.AddrPortFrom(a.Unmap(), port)
		if err := o.Egress.Address(host, to); err != nil {
			return nil, refused(err)
		}
		addresses = append(addresses, to)
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%s has no address", host)
	}
	return addresses, nil
}

func (o Options) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	return o.Lookup(ctx, host)
}

// refused converts an error of the egress rules for the model and the journal.
func refused(err error) error {
	if r, ok := errors.AsType[*egress.Refusal](err); ok {
		return &tool.Error{Type: event.ErrorDenied, Message: r.Host + " may not be reached: " + r.Why, Err: err, NothingCame: true}
	}
	return err
}
