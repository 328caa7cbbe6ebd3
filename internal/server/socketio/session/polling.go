package session

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/internal/server/socketio"
)

// claim marks a kind of request as busy. A second one at a time ends the session.
func (s *Session) claim(busy *bool, w http.ResponseWriter) bool {
	s.mu.Lock()
	second := *busy
	free := s.ended == nil && s.conn == nil && !second
	*busy = second || free
	s.mu.Unlock()
	if second {
		s.end(ErrProtocol)
	}
	if !free {
		badRequest().answer(w)
	}
	return free
}

// poll answers with the queued frames, once there are some.
func (s *Session) poll(w http.ResponseWriter, r *http.Request) {
	if !s.claim(&s.polling, w) {
		return
	}
	// The request is complete; the read now only detects a disconnect.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	for {
		if frames := s.waiting(); len(frames) > 0 {
			s.answer(w, frames)
			return
		}
		select {
		case <-s.wake:
		case <-r.Context().Done():
			s.end(ErrLeft)
			return
		}
	}
}

// waiting returns the frames for a waiting request, which ends with them.
func (s *Session) waiting() (frames []socketio.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		frames, s.queue, s.queued = s.queue, nil, 0
	}
	switch {
	case s.ended != nil:
		frames = append(frames, s.last())
	case len(frames) == 0 && (s.conn != nil || s.probing):
		frames = append(frames, socketio.Frame{Type: socketio.FrameNoop})
	}
	s.polling = len(frames) == 0
	return frames
}

// post receives what the client sends.
func (s *Session) post(w http.ResponseWriter, r *http.Request) {
	if !s.claim(&s.posting, w) {
		return
	}
	err := s.payload(w, r)
	s.mu.Lock()
	s.posting = false
	s.mu.Unlock()
	if err != nil {
		s.end(err)
	}
	tooLarge, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil || err == ErrLeft:
		s.write200(w, []byte("ok"))
	case large:
		http.Error(w, tooLarge.Error(), http.StatusRequestEntityTooLarge)
	default:
		badRequest().answer(w)
	}
}

// payload receives the frames of a request's body.
func (s *Session) payload(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.server.o.MaxPayload)))
	if err != nil {
		return err
	}
	frames, err := socketio.ParsePayload(body)
	if err != nil {
		return err
	}
	for _, f := range frames {
		if err := s.receive(f); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) answer(w http.ResponseWriter, frames []socketio.Frame) {
	s.write200(w, socketio.Payload(frames))
}

func (s *Session) write200(w http.ResponseWriter, body []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.server.o.WriteTimeout))
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=UTF-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if _, err := w.Write(body); err != nil {
		s.end(ErrLeft)
	}
}
