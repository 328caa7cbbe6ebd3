package sandbox

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// loopbackNames returns the names of the machine that a program runs on. In a separate
// network they do not mean the owner's machine.
func loopbackNames() []string { return []string{"localhost", "127.0.0.1", "::1"} }

// unprivileged is the first port that any command may bind in its network.
const unprivileged = 1024

// maxLent bounds how many sockets are passed before a command starts.
const maxLent = 64

// acceptPause is the pause after a failed accept.
const acceptPause = 20 * time.Millisecond

// lentPorts returns the ports of this machine that rules open by number. A command
// finds them on its own loopback interface, because many programs support no proxy, and
// others use none for these names.
func lentPorts(rules egress.Rules) []uint16 {
	var ports []uint16
	for _, port := range localPorts(rules) {
		if len(ports) < maxLent && port >= unprivileged && port != proxyPort && openedAs(rules, port) != "" {
			ports = append(ports, port)
		}
	}
	return ports
}

// openedAs returns the first name of this machine for which rules open a port, empty
// for none.
func openedAs(rules egress.Rules, port uint16) string {
	for _, name := range loopbackNames() {
		if opens(rules, name, port) {
			return name
		}
	}
	return ""
}

// unproxied returns the names for which programs should use no proxy: all names of this
// machine, except those with open ports that are not lent, or that an IPv4 socket does
// not serve.
func unproxied(rules egress.Rules) []string {
	ports, lent := localPorts(rules), lentPorts(rules)
	other := uint16(unprivileged)
	for slices.Contains(ports, other) {
		other++
	}
	return slices.DeleteFunc(loopbackNames(), func(name string) bool {
		return slices.ContainsFunc(append(ports, other), func(port uint16) bool {
			return (!slices.Contains(lent, port) || name == "::1") && opens(rules, name, port)
		})
	})
}

// localPorts returns the ports of this machine that rules name. Ports of other machines
// are left to the command's own servers.
func localPorts(rules egress.Rules) []uint16 {
	var ports []uint16
	for _, pattern := range slices.Concat(rules.Hosts, rules.Private) {
		_, text, err := net.SplitHostPort(string(pattern))
		port, bad := strconv.ParseUint(text, 10, 16)
		if err == nil && bad == nil && slices.ContainsFunc(loopbackNames(), func(name string) bool { return pattern.Match(name, uint16(port)) }) {
			ports = append(ports, uint16(port))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// opens reports whether rules allow a port of this machine under one of its names.
func opens(rules egress.Rules, name string, port uint16) bool {
	address, err := netip.ParseAddr(name)
	if err != nil {
		address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	_, err = rules.Host(name, port)
	return err == nil && rules.Address(name, netip.AddrPortFrom(address, port)) == nil
}

// lend connects clients of a port on the command's loopback interface to the same port
// of this machine, with the rules and the log of the proxy.
func (p *proxy) lend(l net.Listener, port uint16) {
	address := net.JoinHostPort(openedAs(p.rules, port), strconv.Itoa(int(port)))
	context.AfterFunc(p.over, func() { l.Close() })
	l = p.slots.listener(p.over, l)
	p.served.Go(func() {
		for {
			here, err := l.Accept()
			if err != nil {
				// Running out of files is temporary, so it retries.
				select {
				case <-p.over.Done():
					return
				case <-time.After(acceptPause):
					continue
				}
			}
			p.served.Go(func() {
				defer here.Close()
				there, err := p.dial(p.over, "tcp", address)
				if err != nil {
					return
				}
				defer there.Close()
				p.join(here, here, there)
			})
		}
	})
}

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
