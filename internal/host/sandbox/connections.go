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

// connectionSlots are what connections under way hold.
type connectionSlots chan struct{}

func newConnectionSlots() connectionSlots { return make(connectionSlots, maxConnections) }

// listener accepts a connection when there is a place for it, as long as ctx lasts.
func (p connectionSlots) listener(ctx context.Context, l net.Listener) net.Listener {
	return placedListener{Listener: l, ctx: ctx, slots: p}
}

type placedListener struct {
	net.Listener
	ctx   context.Context
	slots connectionSlots
}

// Accept waits for a place, and then for a connection.
func (l placedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &placedConn{Conn: c, leave: sync.OnceFunc(func() { <-l.slots })}, nil
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
