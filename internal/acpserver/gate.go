package acpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
)

// gate blocks reads until ready is closed, because a connection starts to read before
// its constructor returns. It holds the end of the input back until the requests before
// it are answered: the connection drops what is not.
type gate struct {
	io.Reader
	ready <-chan struct{}
	// ended parks the runs, so that the requests end.
	ended func()
	open  *requests
	// line is the beginning of a frame.
	line []byte
}

// Read implements [io.Reader].
func (g *gate) Read(p []byte) (int, error) {
	<-g.ready
	n, err := g.Reader.Read(p)
	g.line = append(g.line, p[:n]...)
	for {
		line, rest, whole := bytes.Cut(g.line, []byte("\n"))
		if !whole {
			break
		}
		g.open.read(line)
		g.line = rest
	}
	if errors.Is(err, io.EOF) && n == 0 {
		g.ended()
		g.open.wait()
	}
	return n, err
}

// ending parks the runs of a connection whose input has ended.
func (s *Server) ending() {
	if err := s.Host.Engine.Close(); err != nil {
		s.Log.Warn("the runs cannot be parked", "error", err)
	}
}

// requests counts the requests without an answer. It is safe for concurrent use.
type requests struct {
	mu    sync.Mutex
	count int
	// none is closed when the count is 0, nil if nothing waits for it.
	none chan struct{}
}

// frame is a message of the protocol.
type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// read counts a request of the editor.
func (r *requests) read(line []byte) {
	var f frame
	if json.Unmarshal(line, &f) != nil || f.ID == nil || f.Method == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
}

// wrote counts an answer to the editor.
func (r *requests) wrote(line []byte) {
	var f frame
	if json.Unmarshal(line, &f) != nil || f.ID == nil || f.Method != "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count--; r.count == 0 && r.none != nil {
		close(r.none)
		r.none = nil
	}
}

// lastAnswers bounds how long the end of the input waits for answers: one that needs the
// editor never comes.
const lastAnswers = 2 * time.Second

// wait waits until all requests are answered.
func (r *requests) wait() {
	r.mu.Lock()
	if r.count <= 0 {
		r.mu.Unlock()
		return
	}
	none := make(chan struct{})
	r.none = none
	r.mu.Unlock()
	select {
	case <-none:
	case <-time.After(lastAnswers):
	}
}
