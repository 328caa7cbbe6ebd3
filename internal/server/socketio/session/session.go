package session

import (
	"errors"
	"fmt"
	"sync"
	"time"

	ws "github.com/coder/websocket"

	"github.com/pawlrun/pawl/internal/server/socketio"
)

// Session is one client, over whichever transport it speaks. It is safe for concurrent
// use.
type Session struct {
	server   *Server
	id       string
	receiver Receiver
	// wake has the request wake up that waits for frames.
	wake chan struct{}

	mu sync.Mutex
	// queue are the frames that wait for the client, and queued their bytes.
	queue  []socketio.Frame
	queued int
	// polling and posting say that there is a request which receives, or sends.
	polling, posting bool
	// conn is the WebSocket that the session is spoken over, nil for none. upgrading
	// says that there is one which is to become that, and probing that it was tried.
	conn               *ws.Conn
	upgrading, probing bool
	// writing says that a goroutine writes the queue to conn.
	writing bool
	// timer is for the next ping, or its answer, for which awaiting is set.
	timer    *time.Timer
	awaiting bool
	ended    error
}

// ID is the session's id, which only its client knows.
func (s *Session) ID() string { return s.id }

// Send sends frames, one after the other, and never waits. What is sent to a session
// that has ended is lost.
func (s *Session) Send(frames ...socketio.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return
	}
	if o := &s.server.o; s.queued > o.MaxQueue || len(s.queue) > o.MaxFrames {
		go s.end(ErrSlow)
		return
	}
	for _, f := range frames {
		s.queue = append(s.queue, f)
		s.queued += len(f.Data) + 1
	}
	s.tell()
}

// tell has the queue written.
func (s *Session) tell() {
	if s.conn != nil && !s.writing {
		s.writing = true
		go s.write(s.conn)
	}
	select {
	case s.wake <- struct{}{}:
	default: // it was woken already
	}
}

// Close ends the session, once its client has what was sent to it.
func (s *Session) Close(why error) { s.end(why) }

// end ends the session, unless it has ended.
func (s *Session) end(why error) {
	s.mu.Lock()
	if s.ended != nil {
		s.mu.Unlock()
		return
	}
	s.ended = why
	if s.timer != nil {
		s.timer.Stop()
	}
	s.tell()
	s.mu.Unlock()
	s.server.forget(s)
	if errors.Is(why, ErrSlow) || errors.Is(why, ErrTimeout) {
		s.drop()
	}
	s.receiver.Closed(why)
}

// drop takes the connection from a client that does not hear.
func (s *Session) drop() {
	s.mu.Lock()
	conn := s.conn
	s.queue, s.queued = nil, 0
	s.mu.Unlock()
	if conn != nil {
		_ = conn.CloseNow()
	}
}

// last is what a request that waits is answered with when the session has ended.
func (s *Session) last() socketio.Frame {
	if errors.Is(s.ended, ErrLeft) {
		return socketio.Frame{Type: socketio.FrameNoop}
	}
	return socketio.Frame{Type: socketio.FrameClose}
}

// receive takes a frame of the client.
func (s *Session) receive(f socketio.Frame) error {
	switch f.Type {
	case socketio.FrameMessage:
		return s.receiver.Receive(f)
	case socketio.FramePong:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.awaiting && s.ended == nil {
			s.awaiting = false
			s.timer.Reset(s.server.o.PingInterval)
		}
		return nil
	case socketio.FrameClose:
		return ErrLeft
	default:
		return fmt.Errorf("%w: a client sends no frame %q now", ErrProtocol, byte(f.Type))
	}
}

// beat asks the client whether it is there, or gives it up.
func (s *Session) beat() {
	s.mu.Lock()
	asked := s.awaiting
	if s.ended == nil && !asked {
		s.awaiting = true
		s.timer.Reset(s.server.o.PingTimeout)
	}
	s.mu.Unlock()
	if asked {
		s.end(ErrTimeout)
		return
	}
	s.Send(socketio.Frame{Type: socketio.FramePing})
}
