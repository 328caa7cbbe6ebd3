package server_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/internal/server"
)

// loopback is a listener within this process, and so within virtual time. What is
// written waits until it is read.
type loopback struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (l loopback) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l loopback) Close() error   { close(l.closed); return nil }
func (l loopback) Addr() net.Addr { return tcp("127.0.0.1:3001") }

// dial makes a request, of which nothing is read.
func (l loopback) dial(t *testing.T, path, accept string) net.Conn {
	t.Helper()
	return l.send(t, "GET "+path+" HTTP/1.1\r\nAccept: "+accept+"\r\n")
}

// send sends a request's first line and headers, without the last empty line and
// the Host.
func (l loopback) send(t *testing.T, head string) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	l.accepted <- end{there}
	if _, err := io.WriteString(here, head+"Host: 127.0.0.1:3001\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = here.Close() })
	return here
}

// serving has a server serve within this process until it is stopped, which
// returns how that ended.
func serving(t *testing.T, s *server.Server) (l loopback, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l, served := loopback{make(chan net.Conn), make(chan struct{})}, make(chan error)
	go func() { served <- s.Serve(ctx, l) }()
	return l, func() error { cancel(); return <-served }
}

// end is the server's end of a connection.
type end struct{ net.Conn }

func (end) LocalAddr() net.Addr  { return tcp("127.0.0.1:3001") }
func (end) RemoteAddr() net.Addr { return tcp("127.0.0.1:4000") }

func tcp(address string) net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
}

func TestAClientThatReadsNoAnswerIsLetGoAndAStreamLastsLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, map[string]string{
			"agent.yaml":  answering,
			"script.yaml": "- text: the end\n  delay: 1h\n",
		})
		_, path := local{s, t}.begin("answers")
		l, stop := serving(t, s)

		silent := l.dial(t, "/v1/runs", "application/json")
		reader := l.dial(t, path+"/events", "text/event-stream")
		stream := bufio.NewReader(reader)
		beats := 0
		for began := time.Now(); time.Since(began) < 10*time.Minute; {
			line, err := stream.ReadString('\n')
			if err != nil {
				t.Fatalf("the stream ends after %s with %v", time.Since(began), err)
			}
			if strings.HasPrefix(line, ": alive") {
				beats++
			}
		}
		if beats < 59 {
			t.Errorf("%d signs of life in ten minutes", beats)
		}
		if answer, err := io.ReadAll(silent); err != nil || len(answer) > 0 {
			t.Errorf("after ten minutes the answer still waits to be read: %q, %v", answer, err)
		}
		_ = reader.Close()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A body that never arrives blocks no answer, whatever would read it.
func TestARequestWhoseBodyDoesNotComeIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, nil)
		l, stop := serving(t, s)
		for head, want := range map[string]int{
			"GET /healthz HTTP/1.1\r\nContent-Length: 9\r\n":                                    http.StatusOK,
			"POST /nothing HTTP/1.1\r\nTransfer-Encoding: chunked\r\n":                          http.StatusNotFound,
			"POST /v1/runs HTTP/1.1\r\nContent-Length: 9\r\nContent-Type: application/json\r\n": http.StatusBadRequest,
		} {
			began := time.Now()
			conn := l.send(t, head)
			_ = conn.SetReadDeadline(began.Add(time.Hour))
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			switch {
			case err != nil:
				t.Errorf("%q: no answer after %s: %v", head, time.Since(began), err)
			case answer.StatusCode != want || time.Since(began) > 30*time.Second:
				t.Errorf("%q: status %d after %s, want %d", head, answer.StatusCode, time.Since(began), want)
			}
			_ = conn.Close()
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestStalledReaderDelaysShutdownByAtMostOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, map[string]string{
			"agent.yaml":  answering,
			"script.yaml": "- text: the end\n  delay: 1h\n",
		})
		_, path := local{s, t}.begin("answers")
		l, stop := serving(t, s)
		l.dial(t, path+"/events", "text/event-stream")
		l.dial(t, "/v1/runs", "application/json")
		synctest.Wait()
		rondoLines := time.Now()
		if err := stop(); err != nil || time.Since(rondoLines) > 2*time.Second {
			t.Errorf("the server ends after %s with %v", time.Since(rondoLines), err)
		}
	})
}
