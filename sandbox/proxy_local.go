package sandbox

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/egress"
)

// own are the names by which programs reach the machine that they run on. In a
// network of their own that is not the machine whose owner names it.
func own() []string { return []string{"localhost", "127.0.0.1", "::1"} }

// unprivileged is the first port that a command's network lets everybody have.
const unprivileged = 1024

// maxNamed bounds how many sockets are handed over before a command starts.
const maxNamed = 64

// acceptPause is how long nobody is heard on a socket that could not be.
const acceptPause = 20 * time.Millisecond

// named are the ports of the machine itself that rules open by their number. A
// command finds them on its own loopback: many programs know of no proxy, and
// those that do ask none for these names.
func named(rules egress.Rules) []uint16 {
	var ports []uint16
	for _, port := range numbers(rules) {
		if len(ports) < maxNamed && port >= unprivileged && port != proxyPort && slices.ContainsFunc(own(), func(name string) bool { return opens(rules, name, port) }) {
			ports = append(ports, port)
		}
	}
	return ports
}

// direct are the names for which programs ask no proxy: all of the machine's
// own, but those under which rules open ports that are not [named], or that a
// socket of IPv4 does not answer to.
func direct(rules egress.Rules) []string {
	ports, found := numbers(rules), named(rules)
	other := uint16(unprivileged)
	for slices.Contains(ports, other) {
		other++
	}
	return slices.DeleteFunc(own(), func(name string) bool {
		return slices.ContainsFunc(append(ports, other), func(port uint16) bool {
			return (!slices.Contains(found, port) || name == "::1") && opens(rules, name, port)
		})
	})
}

// numbers are the ports that rules name of the machine itself. Those that they
// name of another are left to what a command starts itself.
func numbers(rules egress.Rules) []uint16 {
	var ports []uint16
	for _, pattern := range slices.Concat(rules.Hosts, rules.Private) {
		_, text, err := net.SplitHostPort(string(pattern))
		port, bad := strconv.ParseUint(text, 10, 16)
		if err == nil && bad == nil && slices.ContainsFunc(own(), func(name string) bool { return pattern.Match(name, uint16(port)) }) {
			ports = append(ports, uint16(port))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// opens says that rules let a port of the machine be reached under one of its
// own names.
func opens(rules egress.Rules, name string, port uint16) bool {
	address, err := netip.ParseAddr(name)
	if err != nil {
		address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	_, err = rules.Host(name, port)
	return err == nil && rules.Address(name, netip.AddrPortFrom(address, port)) == nil
}

// lend joins whoever comes to a port of the command's own loopback with that of
// the machine, by the rules and on the record of the proxy.
func (p *proxy) lend(l net.Listener, port uint16) {
	name := own()[slices.IndexFunc(own(), func(name string) bool { return opens(p.rules, name, port) })]
	address := net.JoinHostPort(name, strconv.Itoa(int(port)))
	context.AfterFunc(p.over, func() { l.Close() })
	p.served.Go(func() {
		for {
			here, err := l.Accept()
			if err != nil {
				// Too many open files are no reason to hear nobody for good.
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
