// Package egress decides which machines a run may reach. Its rules are pure functions
// of a host's name and of the address that is dialled.
//
// A name is judged before it is resolved, and an address when it is dialled, because a
// name can resolve to a harmless address first and to another one a moment later. Code
// that opens connections for a run calls both [Rules.Host] and [Rules.Address].
package egress

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// Network is how much of the network a run may reach; it is the value of
// tools.permissions.network.
type Network string

// The values of Network, the strictest first.
const (
	// NetworkNone: nothing.
	NetworkNone Network = "none"
	// NetworkAllowlist: the hosts of the list.
	NetworkAllowlist Network = "allowlist"
	// NetworkHost: every machine with a public address.
	NetworkHost Network = "host"
)

// Rules decide what a run may reach. The zero value allows every machine with a public
// address and no other.
type Rules struct {
	// Network is empty for [NetworkHost].
	Network Network `json:"network,omitempty"`
	// Hosts is the list of [NetworkAllowlist] (tools.permissions.hosts).
	Hosts []Pattern `json:"hosts,omitempty"`
	// Private are the hosts that may have addresses which are not public
	// (tools.permissions.private_hosts). A name allows addresses of a local network and
	// of this machine; an address or a prefix allows exactly itself, and is the only
	// way to allow what a name cannot ([Class.Nameable]). It adds nothing to a list of
	// hosts.
	Private []Pattern `json:"private,omitempty"`
	// Closed are never reached, whatever else the rules say.
	Closed []netip.AddrPort `json:"closed,omitempty"`
}

// Refusal is the error for a machine that may not be reached, with the rule.
type Refusal struct {
	// Rule is the key of the agent file that contains the rule.
	Rule string
	// Host is the requested name.
	Host string
	// Why is the reason, as a clause for people and models.
	Why string
}

// Error returns the host and the reason.
func (r *Refusal) Error() string { return "egress: " + r.Host + " may not be reached: " + r.Why }

// Host judges a name, or an address in its place, before it is resolved. It returns the
// canonical form of the host ([CanonicalHost]). The error is a *[Refusal], or reports
// that the text is not a host.
func (r Rules) Host(host string, port uint16) (string, error) {
	name, err := CanonicalHost(host)
	if err != nil {
		return "", err
	}
	if err := r.allows(name, port, netip.Addr{}); err != nil {
		return "", err
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return name, r.public(name, a, port)
	}
	return name, nil
}

// Address judges the address that is about to be dialled for a host. A list of hosts
// must contain the name, or the address if the host is an address.
func (r Rules) Address(host string, to netip.AddrPort) error {
	name, err := CanonicalHost(host)
	if err != nil {
		return err
	}
	if slices.Contains(r.Closed, netip.AddrPortFrom(to.Addr().Unmap(), to.Port())) {
		return &Refusal{Rule: "--journal", Host: name, Why: "the database of the journal is there"}
	}
	if err := r.allows(name, to.Port(), to.Addr()); err != nil {
		return err
	}
	return r.public(name, to.Addr(), to.Port())
}

func (r Rules) allows(name string, port uint16, addr netip.Addr) error {
	switch cmp.Or(r.Network, NetworkHost) {
	case NetworkHost:
		return nil
	case NetworkAllowlist:
		fits := func(p Pattern) bool {
			return p.Match(name, port) || addr.IsValid() && p.Match(canonicalAddr(addr), port)
		}
		if slices.ContainsFunc(r.Hosts, fits) {
			return nil
		}
		return &Refusal{Rule: "tools.permissions.hosts", Host: name, Why: "it is not in tools.permissions.hosts"}
	case NetworkNone:
		return &Refusal{Rule: "tools.permissions.network: none", Host: name, Why: "the run has no access to the network"}
	}
	return &Refusal{
		Rule: "tools.permissions.network: " + string(r.Network), Host: name,
		Why: fmt.Sprintf("%q is no bound on the network that is known", r.Network),
	}
}

func (r Rules) public(name string, addr netip.Addr, port uint16) error {
	class := Classify(addr)
	if class == Public {
		return nil
	}
	opens := func(p Pattern) bool {
		return class.Nameable() && p.Match(name, port) || p.isAddress() && p.Match(canonicalAddr(addr), port)
	}
	if slices.ContainsFunc(r.Private, opens) {
		return nil
	}
	return &Refusal{
		Rule: "tools.permissions.private_hosts", Host: name,
		Why: fmt.Sprintf("its address %s is %s, and tools.permissions.private_hosts does not name it", addr, class.describe()),
	}
}
