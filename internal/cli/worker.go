package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/internal/signals"
)

// drive calls use with a server that answers no requests but those of its peers, and
// closes the server afterwards.
func (a *app) drive(ctx context.Context, files DriveOptions, use func(context.Context, Driver) error) error {
	f := serveFlags{agents: files.Agents, workspace: files.Workspace, labels: files.Labels, onShutdown: "park", tokens: files.Tokens, hosts: files.Hosts, noAuth: files.Metrics == ""}
	a.metrics = signals.NewMetrics()
	session, s, o, err := a.quietServer(ctx, f)
	if err != nil {
		return err
	}
	defer session.close()
	ctx, stop := interruptible(ctx)
	defer stop()
	l, err := server.Listen(ctx, cmp.Or(files.Peers, "127.0.0.1:0"), true)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	peers := s.ServePeers(ctx, l)
	unmeasured, err := a.serveMetrics(ctx, files.Metrics, s, o)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	defer unmeasured()
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		s.Announce(ctx)
	}()
	err = errors.Join(use(ctx, Driver{Server: s, Store: session.store, Log: o.Log}), s.Close())
	stop()
	<-announced
	return errors.Join(err, peers())
}

// serveMetrics serves the metrics of a process that has no other address, until stop is
// called.
func (a *app) serveMetrics(ctx context.Context, at string, s *server.Server, o server.Options) (stop func(), err error) {
	if at == "" {
		return func() {}, nil
	}
	handler, err := s.Metrics()
	if err != nil {
		return nil, err
	}
	l, err := server.Listen(ctx, at, o.Tokens != "")
	if errors.Is(err, server.ErrNotLoopback) || errors.Is(err, server.ErrNoPort) {
		return nil, usagef("--metrics: %s", control.Plain(err))
	}
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn)}
	go func() { _ = web.Serve(l) }()
	o.Log.Info("serves metrics", "address", "http://"+l.Addr().String())
	return func() { _ = web.Close() }, nil
}

// quietServer opens the journal and returns a server on it that listens on no address.
func (a *app) quietServer(ctx context.Context, f serveFlags) (*session, *server.Server, server.Options, error) {
	o, err := a.serverOptions(ctx, f)
	if err != nil {
		return nil, nil, o, err
	}
	if err := a.mirror(ctx, f, &o); err != nil {
		return nil, nil, o, err
	}
	o.NoAuth = o.Tokens == ""
	session, err := a.open(ctx, toServe)
	if err != nil {
		return nil, nil, o, err
	}
	o.Store, o.Engine, o.Controller, o.Budgets = session.store, session.engine, session.controller, session.budgets
	o.Metrics = a.metrics
	s, err := server.New(o)
	if err != nil {
		session.close()
		return nil, nil, o, err
	}
	return session, s, o, nil
}

// checkTemporal rejects --temporal where no worker could drive the runs.
func (a *app) checkTemporal(f serveFlags) error {
	switch {
	case f.temporal == "":
		return nil
	case a.build.Dispatch == nil:
		return usagef("this build does not know Temporal; %s", otherBuild)
	case schemeOf(a.journalPath) == "":
		return usagef("--temporal needs a journal that workers share; name one with --journal postgres://USER@HOST/DATABASE")
	}
	return nil
}

// dispatch connects a server to what places its runs.
func (a *app) dispatch(ctx context.Context, f serveFlags, file *tokens.File, o *server.Options) (err error) {
	if f.temporal == "" {
		return nil
	}
	if o.Dispatcher, err = a.build.Dispatch(ctx, f.temporal, DispatchLimits{MaxQueued: f.maxQueued, Placing: file.Placing}, o.Store, o.Log); err != nil {
		return fmt.Errorf("--temporal: %w", err)
	}
	return nil
}
