// Package mcp provides the tools of MCP servers: programs that it starts and
// communicates with over their stdin and stdout, and servers that it reaches over HTTP.
//
// One attempt at a call is one tools/call request. This package never sends one again:
// a call whose answer is lost may have taken effect, and its effect class alone decides
// whether another attempt is made, with the same key.
//
// A server's description of its tools is untrusted. A tool is at_most_once, its risk is
// unknown, and its results are untrusted, private and may leave the machine, unless its
// owner configures otherwise.
package mcp

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// KeyMeta is the member of a call's _meta that contains its idempotency key, the same
// at every attempt. It is not sent as a header, because net/http repeats requests with
// such a header.
const KeyMeta = "io.github.pawlrun/idempotencyKey"

// Options describe a server and its use.
type Options struct {
	// Server is the prefix of the names of its tools.
	Server string
	// Command is the program of a server to start, and Env contains variables in
	// addition to those of commands, as NAME=value. Shell sets where it runs.
	Command []string
	Env     []string
	Shell   shell.Options
	// URL is the address of a server that is reached over HTTP, Headers are what each
	// request carries. HTTP carries them; nil is a transport of this package's.
	URL     string
	Headers map[string]string
	HTTP    http.RoundTripper
	// Login gives those requests their tokens; nil sends none, and Unauthorized is then
	// what the owner can do if the server answers 401.
	Login        *Login
	Unauthorized string
	// StartTimeout bounds a start until all tools are listed; 0 is 30 s. Timeout bounds
	// the time without an answer or progress of a call; 0 is 2 minutes. MaxTime bounds
	// a whole call; 0 is an hour.
	StartTimeout time.Duration
	Timeout      time.Duration
	MaxTime      time.Duration
	// Roots are the absolute paths of the directories that the server may work in.
	Roots []string
	// Sampling lets a model answer the server; nil refuses that.
	Sampling *Sampling
	// TrustHints applies the readOnlyHint and destructiveHint of tools.
	TrustHints bool
	// Warn receives one-line warnings for the owner; nil drops them.
	Warn func(text string)
	// Log receives the lines that a started server prints to stderr; nil drops them.
	Log func(line string)
}

// defaultTimeout bounds the time without an answer or progress.
const (
	defaultStartTimeout = 30 * time.Second
	defaultTimeout      = 2 * time.Minute
	defaultMaxTime      = time.Hour
)

func (o Options) withDefaults() Options {
	o.StartTimeout = cmp.Or(o.StartTimeout, defaultStartTimeout)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.MaxTime = cmp.Or(o.MaxTime, defaultMaxTime)
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o
}

// Server is an MCP server. It is safe for concurrent use, and must be closed.
type Server struct {
	o   Options
	pin event.ToolServer
	// errs holds the end of the program's stderr.
	errs *lines

	// connecting is locked while a session begins.
	connecting sync.Mutex
	mu         sync.Mutex
	session    *session
	starts     int
	closed     bool
	// changed holds the tools that differ from pin, sorted by name. news holds the same
	// for the journal, until a call has taken it.
	changed []event.ChangedTool
	news    *event.ServerChanged
	// talks holds the calls in progress, during which the server may ask a person.
	talks []*talk
	// sampling is full while a model answers the server.
	sampling chan struct{}
	// progress holds functions to call on progress of the calls in progress, by token.
	progress map[string]func(*sdk.ProgressNotificationParams)
}

// StartError is the reason why a server cannot be used.
type StartError struct {
	Server string
	Err    error
	// Stderr holds the last lines of its program's stderr.
	Stderr []string
}

// Error returns the error followed by the lines of the program.
func (e *StartError) Error() string {
	text := fmt.Sprintf("the MCP server %s: %v", e.Server, e.Err)
	if len(e.Stderr) > 0 {
		text += "\n  " + strings.Join(e.Stderr, "\n  ")
	}
	return text
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Connect starts a server, or reaches it, and lists its tools. The error is a
// [*StartError].
func Connect(ctx context.Context, o Options) (*Server, error) {
	s := newServer(o)
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.StartTimeout, fmt.Errorf("it was not ready after %s", s.o.StartTimeout))
	defer cancel()
	open, tools, err := s.open(ctx)
	if err != nil {
		return nil, s.startError(ctx, err)
	}
	if s.pin, err = pinned(s.o, open, tools); err != nil {
		_ = open.close()
		return nil, s.startError(ctx, err)
	}
	s.session, s.starts = open, 1
	return s, nil
}

// Resume returns a server with the tools that it had when a run began. It connects when
// a call needs it; a tool that has changed since is then refused.
func Resume(o Options, pin event.ToolServer) *Server {
	s := newServer(o)
	s.pin = pin
	return s
}

func newServer(o Options) *Server {
	s := &Server{o: o.withDefaults(), errs: &lines{}, sampling: make(chan struct{}, 1), progress: map[string]func(*sdk.ProgressNotificationParams){}}
	s.errs.log = s.o.Log
	return s
}

func (s *Server) startError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return &StartError{Server: s.o.Server, Err: err, Stderr: s.errs.last(maxStartLines)}
}

// Pin returns the server in the form of a run's first event.
func (s *Server) Pin() event.ToolServer { return s.pin }

// Tools returns the tools of the server. It omits tools that cannot be offered, with a
// warning for each.
func (s *Server) Tools() []tool.Tool {
	var tools []tool.Tool
	for _, p := range s.pin.Tools {
		t, err := s.toolOf(p)
		if err != nil {
			s.o.Warn(fmt.Sprintf("the tool %s.%s is not offered: %v", s.o.Server, p.Name, err))
			continue
		}
		tools = append(tools, t)
	}
	return slices.Clip(tools)
}

// Close ends the session, and the server's program with all that it started.
func (s *Server) Close() error {
	s.mu.Lock()
	open := s.session
	s.session, s.closed = nil, true
	s.mu.Unlock()
	if open == nil {
		return nil
	}
	return open.close()
}
