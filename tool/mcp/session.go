//lint:file-ignore SA1019 servers of protocol 2025-11-25 ask for roots, and a later protocol only advises against them

package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// maxRestarts bounds how often a program that ended is restarted in a run.
const maxRestarts = 3

// restartWait is the wait before the first restart, and doubles with each further one.
const restartWait = 250 * time.Millisecond

// session is a connection to the server.
type session struct {
	client *sdk.ClientSession
	// program is nil for a server that is reached over HTTP.
	program *shell.Service
	// ended is closed when no further call can be made.
	ended chan struct{}
	// stale reports that the server announced a change of its tools since they were
	// listed.
	stale atomic.Bool
	// broken reports that a call found the session closed.
	broken atomic.Bool
	once   sync.Once
}

func (s *session) close() (err error) {
	s.once.Do(func() {
		// The program is closed first, because a session that closes waits for its
		// calls.
		if s.program != nil {
			err = s.program.Close()
		}
		if s.client != nil {
			_ = s.client.Close()
		}
	})
	return err
}

func (s *session) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return s.broken.Load()
	}
}

// open begins a session and lists the tools.
func (s *Server) open(ctx context.Context) (*session, []*sdk.Tool, error) {
	open := &session{ended: make(chan struct{})}
	transport, err := s.transport(open)
	if err != nil {
		return nil, nil, err
	}
	options := &sdk.ClientOptions{
		Capabilities:       s.o.capabilities(),
		ElicitationHandler: s.elicit,
		MultiRoundTrip:     &sdk.MultiRoundTripOptions{Disabled: true},
		Logger:             slog.New(slog.DiscardHandler),
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			open.stale.Store(true)
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			if token, ok := r.Params.ProgressToken.(string); ok {
				s.progressed(token, r.Params)
			}
		},
	}
	if s.o.Sampling != nil {
		options.CreateMessageWithToolsHandler = s.createMessage
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "pawl", Version: "1"}, options)
	client.AddRoots(s.o.roots()...)
	if err := addTasks(client); err != nil {
		return nil, nil, errors.Join(err, open.close())
	}
	if open.client, err = client.Connect(ctx, transport, nil); err != nil {
		return nil, nil, errors.Join(err, open.close())
	}
	go func() {
		_ = open.client.Wait()
		close(open.ended)
	}()
	tools, err := list(ctx, open.client)
	if err != nil {
		return nil, nil, errors.Join(err, open.close())
	}
	return open, tools, nil
}

func (s *Server) transport(open *session) (sdk.Transport, error) {
	if s.o.URL != "" {
		return &sdk.StreamableClientTransport{
			Endpoint: s.o.URL, MaxEventSize: maxFrame,
			HTTPClient: &http.Client{
				Transport: carrier{base: s.o.HTTP, headers: s.o.Headers, login: s.o.Login, unauthorized: s.o.Unauthorized},
				// A redirect would send a call a second time, to another machine.
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			},
		}, nil
	}
	program, err := s.o.Shell.Serve(tool.Invocation{Argv: s.o.Command, Env: s.o.Env}, s.errs)
	if err != nil {
		return nil, err
	}
	open.program = program
	return newStdio(program, func(text string) { s.o.Warn("the MCP server " + s.o.Server + " " + text) }, func() { open.stale.Store(true) }), nil
}

// ready returns a usable session, a new one if the last has ended, and compares the
// tools if they may have changed.
func (s *Server) ready(ctx context.Context) (*session, error) {
	s.connecting.Lock()
	defer s.connecting.Unlock()
	s.mu.Lock()
	open, closed, starts := s.session, s.closed, s.starts
	s.mu.Unlock()
	switch {
	case closed:
		return nil, errors.New("the run has ended")
	case open != nil && !open.over():
		if open.stale.Swap(false) {
			tools, err := list(ctx, open.client)
			if err != nil {
				open.stale.Store(true)
				return nil, err
			}
			return open, s.compare(open, tools)
		}
		return open, nil
	}
	if open != nil {
		_ = open.close()
	}
	if err := s.pause(ctx, starts); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.StartTimeout, fmt.Errorf("it was not ready after %s", s.o.StartTimeout))
	defer cancel()
	s.mu.Lock()
	s.starts++
	s.mu.Unlock()
	open, tools, err := s.open(ctx)
	if err != nil {
		return nil, s.startError(ctx, err)
	}
	s.mu.Lock()
	if closed = s.closed; !closed {
		s.session = open
	}
	s.mu.Unlock()
	if closed {
		return nil, errors.Join(errors.New("the run has ended"), open.close())
	}
	return open, s.compare(open, tools)
}

// pause waits before a program is restarted, and returns an error after too many
// starts.
func (s *Server) pause(ctx context.Context, starts int) error {
	switch {
	case len(s.o.Command) == 0 || starts == 0:
		return nil
	case starts > maxRestarts:
		return fmt.Errorf("its program has ended %d times in this run and is not started again", starts)
	}
	select {
	case <-time.After(restartWait << (starts - 1)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// compare records which tools differ from those that the run pinned.
func (s *Server) compare(open *session, tools []*sdk.Tool) error {
	now, err := pinned(s.o, open, tools)
	if err != nil {
		return err
	}
	changed := Diff(s.pin, now)
	s.mu.Lock()
	s.changed, s.news = changed, &event.ServerChanged{Server: s.o.Server, Tools: changed}
	s.mu.Unlock()
	return nil
}

// Diff lists the tools that changed or are gone between two lists of a server. New
// tools do not count.
func Diff(before, after event.ToolServer) []event.ChangedTool {
	now := map[string]event.ServerTool{}
	for _, t := range after.Tools {
		now[t.Name] = t
	}
	changed := []event.ChangedTool{}
	for _, t := range before.Tools {
		switch other, there := now[t.Name]; {
		case !there:
			changed = append(changed, event.ChangedTool{Name: t.Name, Change: "the server does not list it any more"})
		case other.Digest != t.Digest:
			changed = append(changed, event.ChangedTool{Name: t.Name, Digest: other.Digest, Change: differences(t.Definition, other.Definition)})
		}
	}
	return changed
}

// Differences lists all differences between two lists of a server, including new tools,
// each as a line. It does not compare the owner's settings for the server.
func Differences(before, after event.ToolServer) []string {
	var lines []string
	for _, about := range []struct{ what, was, is string }{
		{"name", before.Name, after.Name}, {"version", before.Version, after.Version}, {"protocol", before.Protocol, after.Protocol},
	} {
		if about.was != about.is {
			lines = append(lines, fmt.Sprintf("its %s was %q and is now %q", about.what, about.was, about.is))
		}
	}
	for _, t := range Diff(before, after) {
		lines = append(lines, fmt.Sprintf("the tool %s: %s", clean(t.Name, maxShownLine), t.Change))
	}
	for _, t := range after.Tools {
		if !slices.ContainsFunc(before.Tools, func(old event.ServerTool) bool { return old.Name == t.Name }) {
			lines = append(lines, fmt.Sprintf("the tool %s is new", clean(t.Name, maxShownLine)))
		}
	}
	return lines
}

// change returns how a tool differs from its definition when the run began, nil if it
// does not.
func (s *Server) change(name string) *event.ChangedTool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.changed, func(t event.ChangedTool) bool { return t.Name == name }); i >= 0 {
		return &s.changed[i]
	}
	return nil
}

// toolsCurrent reports whether the list of tools is up to date.
func (s *Server) toolsCurrent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session != nil && !s.session.over() && !s.session.stale.Load()
}

// takeNews returns the changes that the last list showed, once.
func (s *Server) takeNews() *event.ServerChanged {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := s.news
	s.news = nil
	return news
}

func (s *Server) progressed(token string, p *sdk.ProgressNotificationParams) {
	s.mu.Lock()
	f := s.progress[token]
	s.mu.Unlock()
	if f != nil {
		f(p)
	}
}

// onProgress makes progress of a call invoke f until forget is called.
func (s *Server) onProgress(token string, f func(*sdk.ProgressNotificationParams)) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress[token] = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.progress, token)
	}
}
