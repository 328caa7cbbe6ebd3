// Package acpserver serves sessions to editors over the Agent Client Protocol, wire
// version 1 (agentclientprotocol.com). It is a client of the journal like any other
// surface: a session is a chain of runs, its text is that of their events, and a
// question stays open until any surface decides it.
package acpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/host/guidance"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/internal/sessions"
	"github.com/pawlrun/pawl/internal/view/terminal"
	"github.com/pawlrun/pawl/journal"
)

// Options configure a [Server].
type Options struct {
	Host *sessions.Host
	// MayDecide returns the reason why questions cannot be put to the editor's user; nil
	// means that they can.
	MayDecide func(context.Context) error
	// Trust keeps what the editor's user trusts of a working tree.
	Trust guidance.Trust
	// Command is the command line of pawl on the server's journal, for messages.
	Command, Version string
	Log              *slog.Logger
}

// Server serves the sessions of one editor. It is safe for concurrent use.
type Server struct {
	Options
	conn *acp.AgentSideConnection
	// serving ends when Serve does.
	serving context.Context
	end     context.CancelFunc

	mu sync.Mutex
	// open holds the sessions that the editor has created, loaded or resumed.
	open map[acp.SessionId]*opened
	// unanswered are the editor's requests without an answer.
	unanswered requests
	// creating are the sessions whose creation is not answered yet.
	creating []acp.SessionId
	// buffers reports whether the editor reads and writes files for the server, and
	// terminals whether it shows the output of terminals that it did not start.
	buffers, terminals bool
	// asking counts the goroutines of askAgain.
	asking sync.WaitGroup
	// credentials are the values of the secrets of the editor's MCP servers.
	credentials map[string]string
}

// opened is a session that is open in the editor.
type opened struct {
	dir string
	// servers are the MCP servers of the editor, for a session that begins.
	servers editorServers
	// turn is the current turn, nil between turns; the server's lock guards it.
	turn *sessions.Turn
	// cancelled is closed when the editor cancels the turn, nil before the first one.
	cancelled chan struct{}
	// mode is the mode of the permissions when the session was opened, and model the model
	// that the editor shows, one of models.
	mode   policy.Mode
	model  string
	models []string
	// shown holds a channel for each call, which is closed once the editor was sent the
	// call.
	shown map[string]chan struct{}
}

// call returns the channel of a call. The caller holds the server's lock.
func (o *opened) call(id string) chan struct{} {
	if o.shown == nil {
		o.shown = map[string]chan struct{}{}
	}
	if o.shown[id] == nil {
		o.shown[id] = make(chan struct{})
	}
	return o.shown[id]
}

var (
	_ acp.Agent       = (*Server)(nil)
	_ acp.AgentLoader = (*Server)(nil)
)

// New returns a server.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{Options: o, open: map[acp.SessionId]*opened{}, credentials: map[string]string{}}
	s.Host.Guide, s.Host.Launch.Getenv, s.Host.Launch.Buffers = s.guide, s.getenv(o.Host.Launch.Getenv), s.buffersIn
	s.serving, s.end = context.WithCancel(context.Background())
	return s
}

// Serve serves the editor at the other end of two streams until it closes them or ctx
// ends. It then parks the runs of this process.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ready := make(chan struct{})
	s.conn = acp.NewAgentSideConnection(s, announcer{out, s}, &gate{Reader: in, ready: ready, ended: s.ending, open: &s.unanswered})
	s.conn.SetLogger(s.Log)
	close(ready)
	select {
	case <-s.conn.Done():
	case <-ctx.Done():
	}
	err := s.Host.Engine.Close()
	s.end()
	s.asking.Wait()
	return err
}

// Initialize implements [acp.Agent]. Only what is answered is advertised.
func (s *Server) Initialize(_ context.Context, r acp.InitializeRequest) (acp.InitializeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffers = r.ClientCapabilities.Fs.ReadTextFile && r.ClientCapabilities.Fs.WriteTextFile
	s.terminals, _ = r.ClientCapabilities.Meta[terminalOutput].(bool)
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber,
		AgentInfo:       &acp.Implementation{Name: "pawl", Title: acp.Ptr("Pawl"), Version: s.Version},
		AuthMethods:     []acp.AuthMethod{},
		AgentCapabilities: acp.AgentCapabilities{
			LoadSession:        true,
			McpCapabilities:    acp.McpCapabilities{Http: true},
			PromptCapabilities: acp.PromptCapabilities{Image: true, EmbeddedContext: true},
			SessionCapabilities: acp.SessionCapabilities{
				Close: &acp.SessionCloseCapabilities{}, List: &acp.SessionListCapabilities{}, Resume: &acp.SessionResumeCapabilities{},
			},
		},
	}, nil
}

// Authenticate implements [acp.Agent]. No method is advertised.
func (*Server) Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, acp.NewMethodNotFound(acp.AgentMethodAuthenticate)
}

// NewSession implements [acp.Agent]. The session is in the journal from its first
// message on.
func (s *Server) NewSession(_ context.Context, r acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	servers, err := s.checks(r.Cwd, r.McpServers)
	if err != nil {
		return acp.NewSessionResponse{}, err
	}
	if _, err := s.Host.File(); err != nil {
		return acp.NewSessionResponse{}, invalid(err)
	}
	id := acp.SessionId(engine.NewID())
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &opened{dir: r.Cwd, servers: servers}
	s.settings(o, "")
	s.open[id], s.creating = o, append(s.creating, id)
	return acp.NewSessionResponse{SessionId: id, Modes: modes(""), ConfigOptions: o.options()}, nil
}

// checks validates the parameters of a session, and returns its MCP servers. A session that
// is opened again keeps those that it began with; it only needs their credentials.
func (s *Server) checks(dir string, servers []acp.McpServer) (of editorServers, err error) {
	info, err := os.Stat(dir)
	switch {
	case !filepath.IsAbs(dir):
		return of, invalid(fmt.Errorf("cwd is %q; it must be an absolute path", dir))
	case err != nil:
		return of, invalid(fmt.Errorf("cwd: %w", err))
	case !info.IsDir():
		return of, invalid(fmt.Errorf("cwd is %q, which is not a directory", dir))
	}
	if of, err = s.serversOf(servers); err != nil {
		return of, invalid(err)
	}
	return of, nil
}

// invalid returns the error of a request.
func invalid(err error) error { return acp.NewInvalidParams(map[string]any{"error": err.Error()}) }

// session returns an open session.
func (s *Server) session(id acp.SessionId) (*opened, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.open[id]; o != nil {
		return o, nil
	}
	return nil, invalid(fmt.Errorf("session %s is not open; load it first", id))
}

// LoadSession implements [acp.AgentLoader]. It replays the session from the journal, and
// then asks the questions that are open.
func (s *Server) LoadSession(ctx context.Context, r acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	chain, err := s.reopen(ctx, r.SessionId, r.Cwd, r.McpServers)
	if err != nil {
		return acp.LoadSessionResponse{}, err
	}
	for _, l := range chain {
		if err := s.replay(ctx, r.SessionId, l); err != nil {
			return acp.LoadSessionResponse{}, err
		}
	}
	if err := s.update(ctx, r.SessionId, commands()); err != nil {
		return acp.LoadSessionResponse{}, err
	}
	s.askAgain(ctx, r.SessionId, chain[len(chain)-1].Run)
	o, err := s.session(r.SessionId)
	if err != nil {
		return acp.LoadSessionResponse{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return acp.LoadSessionResponse{Modes: modes(o.mode), ConfigOptions: o.options()}, nil
}

// ResumeSession implements [acp.Agent].
func (s *Server) ResumeSession(ctx context.Context, r acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	chain, err := s.reopen(ctx, r.SessionId, r.Cwd, r.McpServers)
	if err != nil {
		return acp.ResumeSessionResponse{}, err
	}
	s.askAgain(ctx, r.SessionId, chain[len(chain)-1].Run)
	o, err := s.session(r.SessionId)
	if err != nil {
		return acp.ResumeSessionResponse{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return acp.ResumeSessionResponse{Modes: modes(o.mode), ConfigOptions: o.options()}, nil
}

// reopen opens a session of the journal.
func (s *Server) reopen(ctx context.Context, id acp.SessionId, dir string, servers []acp.McpServer) ([]sessions.Link, error) {
	if _, err := s.checks(dir, servers); err != nil {
		return nil, err
	}
	chain, err := sessions.Chain(ctx, s.Host.Store, string(id))
	if errors.Is(err, journal.ErrNotFound) {
		return nil, &acp.RequestError{Code: resourceNotFound, Message: fmt.Sprintf("There is no session %s", id), Data: map[string]any{"error": err.Error()}}
	}
	if err != nil {
		return nil, err
	}
	now, err := s.Host.Settings(ctx, string(id))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[id] == nil {
		s.open[id] = &opened{dir: dir}
	}
	s.open[id].mode = now.Mode
	s.settings(s.open[id], now.Model)
	return chain, nil
}

// resourceNotFound is the protocol's code for an unknown session.
const resourceNotFound = -32002

// maxListed bounds the sessions of a list.
const maxListed = 100

// ListSessions implements [acp.Agent]. The list ends with the newest hundred.
func (s *Server) ListSessions(ctx context.Context, r acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	list, err := sessions.List(ctx, s.Host.Store, *cmp.Or(r.Cwd, new(string)), maxListed)
	if err != nil {
		return acp.ListSessionsResponse{}, err
	}
	answer := acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}
	for _, each := range list {
		answer.Sessions = append(answer.Sessions, acp.SessionInfo{
			SessionId: acp.SessionId(each.ID), Cwd: each.Dir, Title: acp.Ptr(terminal.FirstLine(each.Title, 80)), UpdatedAt: acp.Ptr(each.Newest.Updated.UTC().Format(time.RFC3339)),
		})
	}
	return answer, nil
}

// CloseSession implements [acp.Agent]. It parks the run of the session.
func (s *Server) CloseSession(ctx context.Context, r acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	err := s.interrupt(ctx, r.SessionId)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, r.SessionId)
	return acp.CloseSessionResponse{}, err
}

// Cancel implements [acp.Agent]. The run parks, and the next message continues it.
func (s *Server) Cancel(ctx context.Context, r acp.CancelNotification) error {
	return s.interrupt(ctx, r.SessionId)
}

func (s *Server) interrupt(ctx context.Context, id acp.SessionId) error {
	s.mu.Lock()
	var turn *sessions.Turn
	if o := s.open[id]; o != nil {
		turn = o.turn
		if o.cancelled != nil && !closed(o.cancelled) {
			close(o.cancelled)
		}
	}
	s.mu.Unlock()
	if turn == nil {
		return nil
	}
	return turn.Interrupt(ctx)
}

// closed reports whether a channel is closed.
func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
