package session

import (
	"context"
	"errors"
	"net/http"

	ws "github.com/coder/websocket"

	"github.com/pawlrun/pawl/internal/server/socketio"
)

// accept upgrades a request to a WebSocket. The caller has checked that the request
// is allowed.
func (s *Session) accept(w http.ResponseWriter, r *http.Request) (*ws.Conn, error) {
	conn, err := ws.Accept(w, r, &ws.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(int64(s.server.o.MaxPayload))
	return conn, nil
}

// take makes a connection the transport of the session.
func (s *Session) take(conn *ws.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.upgrading, s.probing = conn, false, false
	s.startWriting()
}

// read receives what the client sends, until the session ends. The writing
// goroutine then closes the connection.
func (s *Session) read(conn *ws.Conn) {
	for {
		f, err := next(context.Background(), conn)
		switch {
		case err == nil:
			err = s.receive(f)
		case !errors.Is(err, socketio.ErrInvalid):
			err = ErrLeft
		}
		if err != nil {
			s.end(err)
			return
		}
	}
}

// next reads one frame.
func next(ctx context.Context, conn *ws.Conn) (socketio.Frame, error) {
	kind, data, err := conn.Read(ctx)
	if err != nil {
		return socketio.Frame{}, err
	}
	if kind == ws.MessageBinary {
		return socketio.Binary(data), nil
	}
	return socketio.ParseFrame(data)
}

// write writes the queue until it is empty, and closes the connection of an ended
// session.
func (s *Session) write(conn *ws.Conn) {
	for {
		s.mu.Lock()
		frames, over := s.queue, s.ended != nil
		s.queue, s.queued = nil, 0
		s.writing = len(frames) > 0
		s.mu.Unlock()
		if len(frames) == 0 {
			if over {
				_ = conn.Close(ws.StatusNormalClosure, "")
			}
			return
		}
		for _, f := range frames {
			if err := s.writeOne(conn, f); err != nil {
				s.end(ErrLeft)
				_ = conn.CloseNow()
				return
			}
		}
	}
}

func (s *Session) writeOne(conn *ws.Conn, f socketio.Frame) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.server.o.WriteTimeout)
	defer cancel()
	if f.Binary {
		return conn.Write(ctx, ws.MessageBinary, f.Data)
	}
	return conn.Write(ctx, ws.MessageText, f.Text())
}

// upgrade moves the session from polling to a WebSocket, once the WebSocket works.
func (s *Session) upgrade(w http.ResponseWriter, r *http.Request) {
	conn, err := s.accept(w, r)
	if err != nil {
		return
	}
	s.mu.Lock()
	refused := s.ended != nil || s.conn != nil || s.upgrading
	s.upgrading = s.upgrading || !refused
	s.mu.Unlock()
	if refused {
		_ = conn.Close(ws.StatusPolicyViolation, "the session has a WebSocket")
		return
	}
	if err := s.probe(conn); err != nil {
		s.mu.Lock()
		s.upgrading, s.probing = false, false
		s.mu.Unlock()
		_ = conn.Close(ws.StatusPolicyViolation, "the upgrade was not completed")
		return
	}
	s.take(conn)
	s.read(conn)
}

// probe waits until the client has probed the connection and upgrades to it.
// Meanwhile frames are sent by polling.
func (s *Session) probe(conn *ws.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.server.o.WriteTimeout)
	defer cancel()
	f, err := next(ctx, conn)
	if err != nil || f.Type != socketio.FramePing || string(f.Data) != "probe" {
		return errors.Join(ErrProtocol, err)
	}
	s.mu.Lock()
	s.probing = true
	s.startWriting()
	s.mu.Unlock()
	f.Type = socketio.FramePong
	if err := conn.Write(ctx, ws.MessageText, f.Text()); err != nil {
		return err
	}
	if f, err = next(ctx, conn); err != nil || f.Type != socketio.FrameUpgrade {
		return errors.Join(ErrProtocol, err)
	}
	return nil
}
