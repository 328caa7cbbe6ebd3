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

// door lets so many connections in at once that descriptors are left for journal and
// tools. Who comes beyond that is told when to come again.
type door struct {
	net.Listener
	most int64
	open atomic.Int64
}

// mostConnections is how many connections a process may have at once, by half of the
// descriptors that it may have.
func mostConnections() int64 {
	const usual = 512
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return usual
	}
	return int64(min(max(files.Cur/2, 16), 1<<20))
}

// Accept implements [net.Listener].
func (d *door) Accept() (net.Conn, error) {
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

// sending is how many bytes the system keeps of what a client has not taken. It would
// keep up to 4 MiB by itself.
const sending = 128 << 10

func boundSending(c net.Conn) {
	if secured, is := c.(*tls.Conn); is {
		c = secured.NetConn()
	}
	if tcp, is := c.(*net.TCPConn); is {
		_ = tcp.SetWriteBuffer(sending) // without it the system's own bound holds
	}
}

// count follows the connections that were let in, as [http.Server.ConnState] does.
func (d *door) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		d.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		d.open.Add(-1)
	}
}

// turnAway answers whatever is asked, and closes the connection. It reads first: a
// connection that is closed with something unread is reset, and its answer lost.
func (d *door) turnAway(c net.Conn) {
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
