package sandbox

import (
	"context"
	"net"
	"sync"
)

// maxConnections bounds the concurrent connections of one command: each uses files and
// goroutines of this process, which other runs need too. Further connections wait.
const maxConnections = 256

// connectionSlots limits the concurrent connections.
type connectionSlots chan struct{}

func newConnectionSlots() connectionSlots { return make(connectionSlots, maxConnections) }

// listener accepts a connection when a slot is free, until ctx ends.
func (p connectionSlots) listener(ctx context.Context, l net.Listener) net.Listener {
	return placedListener{Listener: l, ctx: ctx, slots: p}
}

type placedListener struct {
	net.Listener
	ctx   context.Context
	slots connectionSlots
}

// Accept waits for a slot, and then for a connection.
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

// placedConn releases its slot when it is closed.
type placedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *placedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite closes the write side of the connection.
func (c *placedConn) CloseWrite() error {
	closeWrite(c.Conn)
	return nil
}
