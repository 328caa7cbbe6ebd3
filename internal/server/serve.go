package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// ErrNotLoopback is returned for an address that other machines can reach, if there
// are no tokens.
var ErrNotLoopback = errors.New("server: not an address of this machine alone")

// ErrNoPort is returned for an address without a valid port.
var ErrNoPort = errors.New("server: not a port")

// Listen listens on an address. Without tokens the address must be local:
// 127.0.0.0/8, ::1 or localhost.
func Listen(ctx context.Context, addr string, tokens bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %q is not HOST:PORT", ErrNotLoopback, addr)
	}
	if _, err := net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil {
		return nil, fmt.Errorf("%w: %q is none of 0 to 65535", ErrNoPort, port)
	}
	if strings.EqualFold(host, "localhost") {
		host = "127.0.0.1"
	}
	if ip, err := netip.ParseAddr(host); !tokens && (err != nil || !ip.IsLoopback() || ip.Zone() != "") {
		return nil, fmt.Errorf("%w: %q; it can be 127.0.0.1, [::1] or localhost, and any address with --tokens FILE", ErrNotLoopback, addr)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return l, nil
}

// wholeRequest bounds the time to receive a request, including a body that no
// handler reads, because the answer waits for it.
const wholeRequest = 30 * time.Second

// wholeAnswer bounds the time to send an answer that is not a stream. A stream has
// a limit for each write.
const wholeAnswer = 2 * time.Minute

// shutdownTimeout bounds the shutdown: requests in progress may finish, and runs park or
// end. Streams end at once.
const shutdownTimeout = 10 * time.Second

// ErrLeft is returned if runs had neither parked nor ended in time. They are left
// as after a crash: the next server resumes them.
var ErrLeft = errors.New("server: runs were left as they are")

// errTornDown is the cause that ends runs when a server with teardown stops.
var errTornDown = errors.New("the server stopped, and ends its runs (--on-shutdown teardown)")

// ServePeers answers the requests of the other servers of the journal alone, until ctx
// ends. It closes the listener. Call it before [Server.Announce], which registers the
// address.
func (s *Server) ServePeers(ctx context.Context, l net.Listener) (wait func() error) {
	s.reachable(l.Addr())
	web := &http.Server{Handler: s.recovered(s.limited(s.peer)), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)}
	served := make(chan error, 1)
	go func() { served <- web.Serve(l) }()
	stop := context.AfterFunc(ctx, func() { _ = web.Close() })
	return func() error {
		defer stop()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("server: %w", err)
		}
		return nil
	}
}

// Serve resumes the runs of the journal's last server, answers requests until ctx
// ends, and then closes the server: its runs park or end. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	in := &limitListener{Listener: l, most: s.connections}
	web := &http.Server{
		ConnState:         in.count,
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       wholeRequest,
		WriteTimeout:      wholeAnswer,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	s.reachable(l.Addr())
	s.going.Go(func() { s.continueOthers(s.running) })
	served := make(chan error, 1)
	go func() { served <- web.Serve(in) }()
	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("server: %w", err), s.Close())
	case <-ctx.Done():
	}
	// Streams end with the runs, so the runs are stopped first.
	s.stop(s.goodbye)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	err := web.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("server: requests under way were cut off: %w", errors.Join(err, web.Close()))
	}
	left := make(chan error, 1)
	go func() { left <- s.Close() }()
	select {
	case closing := <-left:
		return errors.Join(err, closing)
	case <-time.After(max(time.Until(deadline), time.Second)):
		return errors.Join(err, fmt.Errorf("%w after %s; start the server again, and it continues them", ErrLeft, shutdownTimeout))
	}
}
