// Package memnet is a network in memory, for tests on virtual time.
package memnet

import (
	"context"
	"net"
	"net/netip"
	"sync"
)

// Network is a listener, and the way to it. Its connections seem to be those of one
// machine, and hold nothing that was written and not read.
type Network struct {
	here, there net.Addr
	conns       chan net.Conn
	closed      chan struct{}
	once        sync.Once
}

// New returns a network whose listener has an address, and whose clients another.
func New(here, there string) *Network {
	addr := func(text string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text)) }
	return &Network{here: addr(here), there: addr(there), conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects a client, wherever it wants to go.
func (n *Network) Dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.conns <- conn{server, n}:
		return client, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Accept implements [net.Listener].
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (n *Network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

// Addr implements [net.Listener].
func (n *Network) Addr() net.Addr { return n.here }

type conn struct {
	net.Conn
	network *Network
}

func (c conn) LocalAddr() net.Addr  { return c.network.here }
func (c conn) RemoteAddr() net.Addr { return c.network.there }
