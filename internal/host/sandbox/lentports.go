package sandbox

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// loopbackNames are those by which programs reach the machine that they run on.
// In a network of their own that is not the machine whose owner names it.
func loopbackNames() []string { return []string{"localhost", "127.0.0.1", "::1"} }

// unprivileged is the first port that a command's network lets everybody have.
const unprivileged = 1024

// maxLent bounds how many sockets are handed over before a command starts.
const maxLent = 64

// acceptPause is the pause after a failed accept.
const acceptPause = 20 * time.Millisecond

// lentPorts are the ports of the machine itself that rules open by their number.
// A command finds them on its own loopback: many programs know of no proxy, and
// those that do ask none for these names.
func lentPorts(rules egress.Rules) []uint16 {
	var ports []uint16
	for _, port := range localPorts(rules) {
		if len(ports) < maxLent && port >= unprivileged && port != proxyPort && openedAs(rules, port) != "" {
			ports = append(ports, port)
		}
	}
	return ports
}

// openedAs is the first of the machine's own names under which rules open a port
// of it, empty where they open none.
func openedAs(rules egress.Rules, port uint16) string {
	for _, name := range loopbackNames() {
		if opens(rules, name, port) {
			return name
		}
	}
	return ""
}

// unproxied are the names for which programs ask no proxy: all of the machine's
// own, but those under which rules open ports that are not lent, or that a socket
// of IPv4 does not answer to.
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

// localPorts are the ports that rules name of the machine itself. Those that they
// name of another are left to what a command starts itself.
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

// opens reports whether rules let a port of the machine be reached under one of its
// own names.
func opens(rules egress.Rules, name string, port uint16) bool {
	address, err := netip.ParseAddr(name)
	if err != nil {
		address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	_, err = rules.Host(name, port)
	return err == nil && rules.Address(name, netip.AddrPortFrom(address, port)) == nil
}

// lend connects clients of a port on the command's own loopback to the same port of
// the machine, under the rules and the log of the proxy.
func (p *proxy) lend(l net.Listener, port uint16) {
	address := net.JoinHostPort(openedAs(p.rules, port), strconv.Itoa(int(port)))
	context.AfterFunc(p.over, func() { l.Close() })
	l = p.slots.listener(p.over, l)
	p.served.Go(func() {
		for {
			here, err := l.Accept()
			if err != nil {
				// Too many open files are no reason to stop accepting for good.
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
