// Package mcp gives a run the tools of MCP servers: programs that it starts and
// speaks to over their input and output, and servers that it reaches over HTTP.
//
// One attempt at a call is one tools/call request. Nothing in this package sends one
// again: a call whose answer is lost may have taken effect, and only its effect
// class decides whether another attempt is made, under the same key.
//
// What a server says of its tools is untrusted. A tool is at_most_once, its risk is
// unknown, and its results are untrusted, private and may leave the machine, unless
// its owner says otherwise.
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

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// KeyMeta is the member of a call's _meta that holds its idempotency key, the same at
// every attempt. No header has it: net/http repeats a request with such a header.
const KeyMeta = "io.github.pawlrun/idempotencyKey"

// Options say which server it is and how it is used.
type Options struct {
	// Server is the name with which the names of its tools begin.
	Server string
	// Command is the program of a server that is started, and Env are variables that
	// it sees beside those of commands, as NAME=value. Shell says where it runs.
	Command []string
	Env     []string
	Shell   shell.Options
	// URL is the address of a server that is reached over HTTP, Headers are what each
	// request carries. HTTP carries them; nil is a transport of this package's.
	URL     string
	Headers map[string]string
	HTTP    http.RoundTripper
	// Login gives those requests their tokens; nil sends none.
	Login *Login
	// StartTimeout bounds a start until all tools are listed; 0 is 30 s. Timeout is
	// how long a call may go without an answer or progress; 0 is 2 minutes. MaxTime
	// bounds a whole call; 0 is an hour.
	StartTimeout time.Duration
	Timeout      time.Duration
	MaxTime      time.Duration
	// Roots are the absolute paths of the directories that the server may work in.
	Roots []string
	// TrustHints lets readOnlyHint and destructiveHint of a tool mean what they say.
	TrustHints bool
	// Warn takes what the owner should know, in one line; nil drops it.
	Warn func(text string)
	// Log takes the lines that a started server prints as errors; nil drops them.
	Log func(line string)
}

// defaultTimeout bounds the silence of a call.
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
	// errs is the end of what the program printed as errors.
	errs *lines

	// connecting is held while a session begins.
	connecting sync.Mutex
	mu         sync.Mutex
	session    *session
	starts     int
	closed     bool
	// changed are the tools that differ from pin, in the order of their names. news is
	// the same for the journal, until a call has taken it.
	changed []event.ChangedTool
	news    *event.ServerChanged
	// talks are the calls under way, in which the server may ask a person.
	talks []*talk
	// progress is called for progress of the calls under way, by their tokens.
	progress map[string]func()
}

// StartError says why a server cannot be used.
type StartError struct {
	Server string
	Err    error
	// Stderr are the last lines that its program printed as errors.
	Stderr []string
}

// Error has the lines of the program below the error.
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

// Resume is a server with the tools that it had when a run began. It is reached when
// a call needs it; a tool that has changed since is refused then.
func Resume(o Options, pin event.ToolServer) *Server {
	s := newServer(o)
	s.pin = pin
	return s
}

func newServer(o Options) *Server {
	s := &Server{o: o.withDefaults(), errs: &lines{}, progress: map[string]func(){}}
	s.errs.log = s.o.Log
	return s
}

func (s *Server) startError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return &StartError{Server: s.o.Server, Err: err, Stderr: s.errs.last(maxStartLines)}
}

// Pin is the server as a run's first event has it.
func (s *Server) Pin() event.ToolServer { return s.pin }

// Tools returns the tools of the server. One that cannot be offered is left out, and
// a warning names it.
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
