package server

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// limitListener bounds the open connections, so that descriptors remain for the
// journal and tools. A connection beyond the limit receives an answer with a time
// to retry.
type limitListener struct {
	net.Listener
	most int64
	open atomic.Int64
}

// mostConnections returns the default limit of connections: half of the process's
// descriptors.
func mostConnections() int64 {
	const usual = 512
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return usual
	}
	return int64(min(max(files.Cur/2, 16), 1<<20))
}

// Accept implements [net.Listener].
func (d *limitListener) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err == nil {
			boundSending(c)
		}
		if err != nil || d.open.Load() < d.most {
			return c, err
		}
		go d.turnAway(c)
	}
}

// sending is the size of the system's send buffer for a client. The default grows
// to 4 MiB.
const sending = 128 << 10

func boundSending(c net.Conn) {
	if secured, is := c.(*tls.Conn); is {
		c = secured.NetConn()
	}
	if tcp, is := c.(*net.TCPConn); is {
		_ = tcp.SetWriteBuffer(sending) // on failure the system's own limit applies
	}
}

// count tracks the accepted connections, as [http.Server.ConnState] does.
func (d *limitListener) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		d.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		d.open.Add(-1)
	}
}

// turnAway answers a request with a refusal and closes the connection. It reads the
// request first, because closing a connection with unread data resets it and loses
// the answer.
func (d *limitListener) turnAway(c net.Conn) {
	defer c.Close()
	const after = 5
	p := kindUnavailable.problem("close connections that are not needed, or wait as long as the header Retry-After says", "the server has %d connections, and takes no more", d.most)
	body, err := json.Marshal(p)
	if err != nil {
		return
	}
	_ = c.SetDeadline(time.Now().Add(lastWrite))
	_, _ = c.Read(make([]byte, 16<<10))
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\nRetry-After: %d\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		p.Status, http.StatusText(p.Status), after, len(body), body)
}
