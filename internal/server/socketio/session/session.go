package session

import (
	"errors"
	"fmt"
	"sync"
	"time"

	ws "github.com/coder/websocket"

	"github.com/pawlrun/pawl/internal/server/socketio"
)

// Session is the session of one client, over any transport. It is safe for
// concurrent use.
type Session struct {
	server   *Server
	id       string
	receiver Receiver
	// wake wakes the request that waits for frames.
	wake chan struct{}

	mu sync.Mutex
	// queue holds the frames that wait for the client, and queued their size in
	// bytes.
	queue  []socketio.Frame
	queued int
	// polling and posting report that a request is receiving or sending.
	polling, posting bool
	// conn is the WebSocket of the session, nil for none. upgrading reports that a
	// WebSocket is about to become conn, and probing that the client has probed it.
	conn               *ws.Conn
	upgrading, probing bool
	// writing reports that a goroutine is writing the queue to conn.
	writing bool
	// timer fires for the next ping, or, if awaiting is set, for a missing answer.
	timer    *time.Timer
	awaiting bool
	ended    error
}

// ID returns the session's id, which only its client knows.
func (s *Session) ID() string { return s.id }

// Send queues frames in order, and never waits. Frames for a session that has ended
// are lost.
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
	s.startWriting()
}

// startWriting starts writing the queue.
func (s *Session) startWriting() {
	if s.conn != nil && !s.writing {
		s.writing = true
		go s.write(s.conn)
	}
	select {
	case s.wake <- struct{}{}:
	default: // it is already awake
	}
}

// Close ends the session after the queued frames are sent.
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
	s.startWriting()
	s.mu.Unlock()
	s.server.forget(s)
	if errors.Is(why, ErrSlow) || errors.Is(why, ErrTimeout) {
		s.drop()
	}
	s.receiver.Closed(why)
}

// drop closes the connection of a client that does not read.
func (s *Session) drop() {
	s.mu.Lock()
	conn := s.conn
	s.queue, s.queued = nil, 0
	s.mu.Unlock()
	if conn != nil {
		_ = conn.CloseNow()
	}
}

// last is the answer to a waiting request when the session has ended.
func (s *Session) last() socketio.Frame {
	if errors.Is(s.ended, ErrLeft) {
		return socketio.Frame{Type: socketio.FrameNoop}
	}
	return socketio.Frame{Type: socketio.FrameClose}
}

// receive handles a frame of the client.
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

// beat sends a ping, or ends the session if the last one was not answered.
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
