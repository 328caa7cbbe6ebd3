// Package mcpserver serves agent files as tools of the Model Context Protocol, over
// stdio and streamable HTTP. A call starts a run as a request over HTTP does: every
// request of a client becomes one of package server, with its role and its audit.
package mcpserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/internal/signals"
)

// OnCancel is what a cancelled call leaves of its run.
type OnCancel string

// The values of [OnCancel].
const (
	// Park parks the run. The same call with the same key continues it.
	Park OnCancel = "park"
	// Cancel ends the run.
	Cancel OnCancel = "cancel"
)

// Options configure a [Server].
type Options struct {
	Server *server.Server
	// User makes the requests of stdio, and of HTTP without tokens.
	User event.Principal
	// MayDecide returns why questions of runs cannot be answered through the client; nil
	// leaves that to the role of the client's principal.
	MayDecide func(context.Context) error
	OnCancel  OnCancel
	Version   string
	// Command is how a person calls pawl with the journal of the server.
	Command string
	// WriteLog writes a run for people.
	WriteLog func(ctx context.Context, run string, w io.Writer) error
	// Exporter receives a span of each request; nil records none.
	Exporter *signals.Exporter
	Log      *slog.Logger
}

// Server serves runs over the Model Context Protocol. It is safe for concurrent use.
type Server struct {
	Options
	protocol *mcp.Server

	mu sync.Mutex
	// tools are the files that are offered, by the names of their tools.
	tools map[string]*offer
	// refused are the files that are not offered, with the reasons that were logged.
	refused map[string]string
}

// New returns a server of what o.Server runs.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{Options: o, tools: map[string]*offer{}, refused: map[string]string{}}
	capabilities := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}, Resources: &mcp.ResourceCapabilities{}}
	capabilities.AddExtension(tasksExtension, nil)
	s.protocol = mcp.NewServer(&mcp.Implementation{Name: "pawl", Title: "Pawl", Version: o.Version}, &mcp.ServerOptions{
		Capabilities: capabilities,
		Instructions: "Each tool runs an agent until it has an answer, which may take minutes. A call with the same " + KeyMeta +
			" in its _meta gives the same run.",
	})
	s.addResources()
	if err := s.addTasks(); err != nil {
		return nil, err
	}
	// The first of them is the outermost.
	s.protocol.AddReceivingMiddleware(s.identify, s.trace, s.refresh, s.asTask)
	return s, s.load()
}

// Serve speaks with the client at the other end of two streams until it closes them
// or ctx ends. It closes the server of the runs, so that they park.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.Writer) error {
	session, err := s.protocol.Connect(ctx, &mcp.IOTransport{Reader: in, Writer: withoutClose{out}}, nil)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- session.Wait() }()
	select {
	case err = <-done:
		err = errors.Join(err, s.Options.Server.Close())
	case <-ctx.Done():
		// Calls are answered once their runs have parked, before the session closes.
		err = errors.Join(s.Options.Server.Close(), session.Close())
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// withoutClose is a writer that is not closed.
type withoutClose struct{ io.Writer }

func (withoutClose) Close() error { return nil }

// callerKey is the key of a request's caller in its context.
type callerKey struct{}

// callerOf is the principal that makes a request.
func callerOf(ctx context.Context) server.Caller {
	c, _ := ctx.Value(callerKey{}).(server.Caller)
	return c
}

// identify finds the principal of a request: that of its token, where it has one. A
// session's context is that of its first request, so it is not asked for a later one.
func (s *Server) identify(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		p := s.User
		if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
			p, _ = extra.TokenInfo.Extra[principalExtra].(event.Principal)
		} else if made := server.PrincipalOf(ctx); made.Name != "" {
			p = made
		}
		return next(context.WithValue(ctx, callerKey{}, server.Caller{Principal: p, Surface: "mcp"}), method, req)
	}
}
