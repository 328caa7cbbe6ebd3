package sandbox

import (
	"context"
	"net"
	"sync"
)

// maxConnections is how many connections of one command are served at once: each
// takes files and goroutines of this process, which other runs need as well. More
// wait for one that ends.
const maxConnections = 256

// places are what connections under way hold.
type places chan struct{}

func newPlaces() places { return make(places, maxConnections) }

// listener accepts a connection when there is a place for it, as long as ctx lasts.
func (p places) listener(ctx context.Context, l net.Listener) net.Listener {
	return placedListener{Listener: l, ctx: ctx, places: p}
}

type placedListener struct {
	net.Listener
	ctx    context.Context
	places places
}

// Accept waits for a place, and then for a connection.
func (l placedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placedConn{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// placedConn gives its place back when it is closed.
type placedConn struct {
	net.Conn
	leave func()
}

// Close ends the connection.
func (c *placedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite says that nothing more will come.
func (c *placedConn) CloseWrite() error {
	closeWrite(c.Conn)
	return nil
}
