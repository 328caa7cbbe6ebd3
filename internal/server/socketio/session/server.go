// Package session implements the server side of Engine.IO 4 and Socket.IO 5:
// sessions over long polling and WebSocket, and their connections to namespaces.
//
// Sending never waits for a client. Frames wait in the session's queue; a client is
// dropped if its queue exceeds the limit, a write takes too long, or a ping stays
// unanswered. An idle session costs a timer and, over WebSocket, the goroutine that
// reads.
package session

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/server/socketio"
)

// Options configures sessions.
type Options struct {
	// PingInterval is the idle time before a ping, and PingTimeout the time for its
	// answer.
	PingInterval, PingTimeout time.Duration
	// MaxPayload bounds the bytes of one message, or of one request's body.
	MaxPayload int
	// MaxQueue and MaxFrames bound the bytes and frames that wait for a client. One
	// message may be larger.
	MaxQueue, MaxFrames int
	// WriteTimeout bounds one write, and the steps of an upgrade.
	WriteTimeout time.Duration
	// Open accepts a session that a request opens. Its error refuses the request.
	Open func(s *Session, r *http.Request) (Receiver, error)
	// Refuse answers a request that Open refused.
	Refuse func(w http.ResponseWriter, r *http.Request, err error)
}

// Receiver receives the messages of one session's client.
type Receiver interface {
	// Receive receives a message. It must not block, and its error ends the
	// session.
	Receive(f socketio.Frame) error
	// Closed is called once, when the session has ended, with the reason.
	Closed(why error)
}

// Reasons why sessions end.
var (
	ErrTimeout   = errors.New("session: the client did not answer a ping in time")
	ErrSlow      = errors.New("session: the client does not read what is sent to it")
	ErrLeft      = errors.New("session: the client has left")
	ErrProtocol  = errors.New("session: the client does not keep to the protocol")
	ErrShutdown  = errors.New("session: the server shuts down")
	ErrNoConnect = errors.New("session: the client has connected to no namespace in time")
)

// Server holds sessions. It is safe for concurrent use.
type Server struct {
	o Options

	mu       sync.Mutex
	sessions map[string]*Session
	closed   bool
	handlers sync.WaitGroup
}

// New returns a server without sessions.
func New(o Options) *Server { return &Server{o: o, sessions: map[string]*Session{}} }

// Session returns the session with an id, nil if there is none.
func (s *Server) Session(id string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

// Len returns the number of sessions.
func (s *Server) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Close ends all sessions. It waits up to a second for their clients to receive
// that, and returns when no request is in progress.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	all := make([]*Session, 0, len(s.sessions))
	for _, each := range s.sessions {
		all = append(all, each)
	}
	s.mu.Unlock()
	for _, each := range all {
		each.end(ErrShutdown)
	}
	timer := time.AfterFunc(time.Second, func() {
		for _, each := range all {
			each.drop()
		}
	})
	s.handlers.Wait()
	timer.Stop()
}

// transport is the transport of a session.
type transport string

const (
	polling   transport = "polling"
	websocket transport = "websocket"
)

// refusal is the answer to a request that violates the protocol.
type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Refusals of Engine.IO.
func unknownTransport() refusal { return refusal{0, "Transport unknown"} }
func unknownSession() refusal   { return refusal{1, "Session ID unknown"} }
func badMethod() refusal        { return refusal{2, "Bad handshake method"} }
func badRequest() refusal       { return refusal{3, "Bad request"} }
func badVersion() refusal       { return refusal{5, "Unsupported protocol version"} }

func (f refusal) answer(w http.ResponseWriter) {
	text, _ := json.Marshal(f)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(text)
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.o.Refuse(w, r, ErrShutdown)
		return
	}
	s.handlers.Add(1)
	s.mu.Unlock()
	defer s.handlers.Done()

	query := r.URL.Query()
	id, by := query.Get("sid"), transport(query.Get("transport"))
	session := s.Session(id)
	switch {
	case by != polling && by != websocket:
		unknownTransport().answer(w)
	case query.Get("EIO") != "4":
		badVersion().answer(w)
	case by == websocket && !strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		badRequest().answer(w)
	case id == "" && r.Method != http.MethodGet:
		badMethod().answer(w)
	case id == "":
		s.open(w, r, by)
	case session == nil:
		unknownSession().answer(w)
	case by == websocket:
		session.upgrade(w, r)
	case r.Method == http.MethodGet:
		session.poll(w, r)
	case r.Method == http.MethodPost:
		session.post(w, r)
	default:
		badRequest().answer(w)
	}
}

// handshake is the first message to a client, with the session's parameters.
type handshake struct {
	SID          string      `json:"sid"`
	Upgrades     []transport `json:"upgrades"`
	PingInterval int64       `json:"pingInterval"`
	PingTimeout  int64       `json:"pingTimeout"`
	MaxPayload   int         `json:"maxPayload"`
}

// open opens a session.
func (s *Server) open(w http.ResponseWriter, r *http.Request, by transport) {
	session := &Session{server: s, id: rand.Text(), wake: make(chan struct{}, 1)}
	var err error
	if session.receiver, err = s.o.Open(session, r); err != nil {
		s.o.Refuse(w, r, err)
		return
	}
	upgrades := []transport{}
	if by == polling {
		upgrades = append(upgrades, websocket)
	}
	text, _ := json.Marshal(handshake{
		session.id, upgrades, s.o.PingInterval.Milliseconds(), s.o.PingTimeout.Milliseconds(), s.o.MaxPayload,
	})
	session.mu.Lock()
	session.timer = time.AfterFunc(s.o.PingInterval, session.beat)
	session.mu.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		session.end(ErrShutdown)
		s.o.Refuse(w, r, ErrShutdown)
		return
	}
	s.sessions[session.id] = session
	s.mu.Unlock()
	first := socketio.Frame{Type: socketio.FrameOpen, Data: text}
	if by == polling {
		session.answer(w, []socketio.Frame{first})
		return
	}
	conn, err := session.accept(w, r)
	if err != nil {
		session.end(ErrLeft)
		return
	}
	session.Send(first)
	session.take(conn)
	session.read(conn)
}

func (s *Server) forget(session *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, session.id)
}
