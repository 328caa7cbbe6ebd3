package egress

import (
	"net/netip"
	"slices"
)

// Class is the kind of network location of an address.
type Class string

// The classes. Only [Public] addresses can be reached without being named.
const (
	Public      Class = "public"
	Loopback    Class = "loopback"
	Private     Class = "private"
	Shared      Class = "shared"
	LinkLocal   Class = "link_local"
	Metadata    Class = "metadata"
	Multicast   Class = "multicast"
	Unspecified Class = "unspecified"
	Reserved    Class = "reserved"
)

// Nameable reports whether naming a host is enough to reach addresses of the class. The
// owner of a name could point it to a cloud's metadata service, which returns
// credentials, so such an address must be named itself.
func (c Class) Nameable() bool {
	return c == Public || c == Loopback || c == Private || c == Shared
}

func (c Class) describe() string {
	switch c {
	case Loopback:
		return "this machine's own"
	case Private:
		return "of a private network"
	case Shared:
		return "of a carrier's shared network"
	case LinkLocal:
		return "link-local"
	case Metadata:
		return "that of a cloud's metadata service"
	case Multicast:
		return "a multicast one"
	case Unspecified:
		return "no machine's"
	}
	return "in a reserved range"
}

// metadata are the addresses at which clouds serve a machine's credentials.
var metadata = addresses("169.254.169.254", "169.254.170.2", "169.254.170.23", "168.63.129.16", "100.100.100.200", "192.0.0.192",
	"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "fd00:c1::a9fe:a9fe")

var shared = netip.MustParsePrefix("100.64.0.0/10")

// reserved are the ranges of IANA's special-purpose registries that are neither public
// nor of another class.
var reserved = prefixes(
	"0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

// global contains the public IPv6 addresses; everything else is not public.
var global = netip.MustParsePrefix("2000::/3")

// nat64 is the prefix under which IPv6 reaches IPv4 machines; compatible is a
// deprecated prefix for the same purpose.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	compatible = netip.MustParsePrefix("::/96")
)

// Classify returns the class of an address. An IPv6 address that contains an IPv4 one
// (IPv4-mapped, NAT64) has the class of the IPv4 address; the tunnels 6to4 and Teredo
// lead to unknown places, and are reserved.
func Classify(a netip.Addr) Class {
	a = carried(a)
	switch {
	case !a.IsValid():
		return Reserved
	case slices.Contains(metadata, a):
		return Metadata
	case a.IsUnspecified():
		return Unspecified
	case a.IsLoopback():
		return Loopback
	case a.IsPrivate():
		return Private
	case a.IsLinkLocalUnicast():
		return LinkLocal
	case a.IsMulticast():
		return Multicast
	case shared.Contains(a):
		return Shared
	case slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a) }):
		return Reserved
	case a.Is6() && !global.Contains(a):
		return Reserved
	}
	return Public
}

// carried returns the IPv4 address inside an IPv6 one, or the address itself.
func carried(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	if nat64.Contains(a) || compatible.Contains(a) && !a.IsUnspecified() && !a.IsLoopback() {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

func canonicalAddr(a netip.Addr) string { return a.Unmap().String() }

func addresses(list ...string) []netip.Addr {
	out := make([]netip.Addr, len(list))
	for i, s := range list {
		out[i] = netip.MustParseAddr(s)
	}
	return out
}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}
