// Package mcpserver serves agent files as tools of the Model Context Protocol, over
// stdio and streamable HTTP. A call starts a run like an HTTP request does: every
// client request becomes a request to package server, with the same roles and audit.
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

// OnCancel is the effect of a cancelled call on its run.
type OnCancel string

// Values of [OnCancel].
const (
	// Park parks the run. A call with the same key continues it.
	Park OnCancel = "park"
	// Cancel ends the run.
	Cancel OnCancel = "cancel"
)

// Options configure a [Server].
type Options struct {
	Server *server.Server
	// User is the principal of requests over stdio, and over HTTP without tokens.
	User event.Principal
	// MayDecide returns the reason why questions of runs cannot be answered through the
	// client; if it is nil, the role of the client's principal decides.
	MayDecide func(context.Context) error
	OnCancel  OnCancel
	Version   string
	// Command is the command line with which a person runs pawl on the server's
	// journal.
	Command string
	// WriteLog writes a run as text for people.
	WriteLog func(ctx context.Context, run string, w io.Writer) error
	// Exporter receives a span for each request; nil records none.
	Exporter *signals.Exporter
	Log      *slog.Logger
}

// Server serves runs over the Model Context Protocol. It is safe for concurrent use.
type Server struct {
	Options
	protocol *mcp.Server

	mu sync.Mutex
	// tools holds the offered files, by the names of their tools.
	tools map[string]*offer
	// refused holds the files that cannot be offered, with the logged reasons.
	refused map[string]string
}

// New returns a server for the files and runs of o.Server.
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
	// The first middleware is the outermost.
	s.protocol.AddReceivingMiddleware(s.identify, s.trace, s.refresh, s.asTask)
	return s, s.load()
}

// Serve serves the client at the other end of two streams until the client closes them
// or ctx ends. It then closes the server of the runs, so that they park.
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

// withoutClose is a writer whose Close does nothing.
type withoutClose struct{ io.Writer }

func (withoutClose) Close() error { return nil }

// callerKey is the context key of a request's caller.
type callerKey struct{}

// callerOf returns the principal of a request.
func callerOf(ctx context.Context) server.Caller {
	c, _ := ctx.Value(callerKey{}).(server.Caller)
	return c
}

// identify adds the principal of a request to its context. A token takes precedence
// over ctx, because in a session ctx is that of the first request.
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
