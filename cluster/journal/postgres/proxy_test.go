package postgres_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// fault determines how a proxy handles a piece of traffic before it cuts the
// connection.
type fault int

const (
	// drop cuts before the piece, half within it, and pass after it.
	drop fault = iota
	half
	pass
	faults
)

// proxy connects a store to the server. It cuts the connection after a given number of
// pieces of traffic, and can suppress notifications as a pooler does.
type proxy struct {
	l     net.Listener
	to    string
	cuts  atomic.Int64
	muted atomic.Bool

	mu    sync.Mutex
	armed bool
	left  int
	how   fault
}

// through returns a proxy to the server, and a URL of the schema that uses the proxy.
func through(t *testing.T, at string) (*proxy, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, to: u.Host}
	u.Host = l.Addr().String()
	u.RawQuery += "&sslmode=disable"
	t.Cleanup(func() { _ = l.Close() })
	go p.accept()
	return p, u.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		backend, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		go p.pump(client, backend, client, backend)
		go p.answers(client, backend)
	}
}

// arm cuts at the left-th piece from now, in either direction.
func (p *proxy) arm(left int, how fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.left, p.how = true, left, how
}

// hit counts a piece and reports whether the connection must be cut at it.
func (p *proxy) hit() (how fault, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed {
		return 0, false
	}
	if p.left--; p.left >= 0 {
		return 0, false
	}
	p.armed = false
	p.cuts.Add(1)
	return p.how, true
}

// send sends a piece, or a part of it before it cuts the connection.
func (p *proxy) send(to net.Conn, piece []byte) bool {
	how, cut := p.hit()
	if cut {
		piece = map[fault][]byte{drop: nil, half: piece[:len(piece)/2], pass: piece}[how]
	}
	_, err := to.Write(piece)
	return err == nil && !cut
}

func (p *proxy) pump(from, to, client, backend net.Conn) {
	defer client.Close()
	defer backend.Close()
	buffer := make([]byte, 1<<20)
	for {
		n, err := from.Read(buffer)
		if err != nil || !p.send(to, buffer[:n]) {
			return
		}
	}
}

// answers forwards the server's messages one by one.
func (p *proxy) answers(client, backend net.Conn) {
	defer client.Close()
	defer backend.Close()
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(backend, head); err != nil {
			return
		}
		message := append(head, make([]byte, binary.BigEndian.Uint32(head[1:])-4)...)
		if _, err := io.ReadFull(backend, message[5:]); err != nil {
			return
		}
		const notification = 'A'
		if head[0] == notification && p.muted.Load() {
			continue
		}
		if !p.send(client, message) {
			return
		}
	}
}
