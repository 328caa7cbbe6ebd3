package wiregate

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Cut says in which pieces an answer's body reaches its reader.
type Cut int

// The ways to cut a body.
const (
	Unsplit Cut = iota
	// PerEvent cuts behind every blank line.
	PerEvent
	OneByte
)

func (c Cut) String() string {
	return [...]string{"whole", "cut at every event", "one byte at a time"}[c]
}

// Replay answers the n-th request with the n-th exchange and keeps what it was
// sent. Further requests get the last exchange again, and are counted.
type Replay struct {
	URL       string
	exchanges []Exchange

	mu       sync.Mutex
	requests [][]byte
}

// Serve replays exchanges on loopback until the test ends.
func Serve(t testing.TB, exchanges ...Exchange) *Replay {
	t.Helper()
	r := &Replay{exchanges: exchanges}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.URL = s.URL
	return r
}

// ServeHTTP answers one request. An event stream is flushed event by event.
func (r *Replay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	x := r.exchanges[min(len(r.requests), len(r.exchanges)-1)]
	r.requests = append(r.requests, body)
	r.mu.Unlock()
	for name, values := range x.Header {
		switch http.CanonicalHeaderKey(name) {
		case "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection":
		default:
			w.Header()[http.CanonicalHeaderKey(name)] = values
		}
	}
	w.WriteHeader(x.Status)
	for piece := range pieces(x.Body, PerEvent) {
		if _, err := w.Write(piece); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// Requests are the bodies received so far.
func (r *Replay) Requests() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([][]byte(nil), r.requests...)
}

// Client talks to the replay over HTTP; what it reads is cut exactly so.
func (r *Replay) Client(cut Cut) *http.Client {
	return &http.Client{Transport: cutter{next: http.DefaultTransport, cut: cut}}
}

// cutter cuts the bodies that a transport returns.
type cutter struct {
	next http.RoundTripper
	cut  Cut
}

func (c cutter) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(req)
	if err != nil || c.cut == Unsplit {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if err := resp.Body.Close(); err != nil {
		return nil, err
	}
	resp.Body = newPieceReader(body, c.cut, nil)
	return resp, nil
}

// canned answers every request from memory, so that thousands of damaged
// bodies cost no connection.
type canned struct {
	exchange *Exchange
	body     []byte
	cut      Cut
	// broken, where set, ends the body in place of io.EOF.
	broken error
}

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return nil, err
		}
		if err := req.Body.Close(); err != nil {
			return nil, err
		}
	}
	return &http.Response{
		StatusCode: c.exchange.Status, Status: fmt.Sprint(c.exchange.Status), Header: c.exchange.Header.Clone(), Request: req,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Body: newPieceReader(c.body, c.cut, c.broken),
	}, nil
}

// pieces yields a body in the pieces of a cut.
func pieces(body []byte, cut Cut) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(body) > 0 {
			n := pieceLen(body, cut)
			if !yield(body[:n]) {
				return
			}
			body = body[n:]
		}
	}
}

func pieceLen(body []byte, cut Cut) int {
	switch cut {
	case OneByte:
		return 1
	case PerEvent:
		for _, blank := range []string{"\n\n", "\r\n\r\n"} {
			if i := bytes.Index(body, []byte(blank)); i >= 0 {
				return i + len(blank)
			}
		}
	}
	return len(body)
}

// pieceReader gives at most one piece a read.
type pieceReader struct {
	body []byte
	left int
	cut  Cut
	end  error
}

func newPieceReader(body []byte, cut Cut, end error) io.ReadCloser {
	if end == nil {
		end = io.EOF
	}
	return &pieceReader{body: body, cut: cut, end: end}
}

func (r *pieceReader) Read(p []byte) (int, error) {
	if len(r.body) == 0 {
		return 0, r.end
	}
	if r.left == 0 {
		r.left = pieceLen(r.body, r.cut)
	}
	n := copy(p, r.body[:r.left])
	r.body, r.left = r.body[n:], r.left-n
	return n, nil
}

func (r *pieceReader) Close() error { return nil }
