package egress

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// maxHost is the limit of DNS on the bytes of a host's name.
const maxHost = 253

// CanonicalHost returns the canonical form of a host: a name in lower case without a
// final dot, and an IPv4 address for an IPv6 one that contains it. It rejects names
// that some resolvers interpret as an address (0x7f.1, 127.1, 2130706433), and
// characters outside of DNS names: names in other scripts must be in their ASCII form
// (xn--…).
func CanonicalHost(host string) (string, error) {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if inner, ok := strings.CutPrefix(name, "["); ok {
		name = strings.TrimSuffix(inner, "]")
	}
	if a, err := netip.ParseAddr(name); err == nil {
		if a.Zone() != "" {
			return "", fmt.Errorf("egress: %q is no host: an address with a zone is not reached", host)
		}
		return canonicalAddr(a), nil
	}
	if len(name) > maxHost {
		return "", fmt.Errorf("egress: a name of %d bytes is no host", len(name))
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if !isLabel(label) {
			return "", fmt.Errorf("egress: %q is no host", host)
		}
	}
	if isNumber(labels[len(labels)-1]) {
		return "", fmt.Errorf("egress: %q is no host: an address is written as 192.0.2.1 or 2001:db8::1", host)
	}
	return name, nil
}

func isLabel(s string) bool {
	if s == "" || len(s) > 63 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// isNumber reports whether some resolvers interpret a name with this last label as an
// address.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// Pattern is one entry of a list of hosts: a name (example.com), all subdomains of one
// (*.example.com, which does not match example.com), an address (192.0.2.1), or a
// prefix of addresses (10.0.0.0/8), each with an optional port (localhost:8080,
// [::1]:8080). Without a port it matches every port.
type Pattern string

// Valid reports whether the pattern can match anything.
func (p Pattern) Valid() bool {
	_, ok := p.parse()
	return ok
}

// Match reports whether the pattern matches a host in its canonical form and the port.
// Port 0 is an unknown port, which every pattern matches.
func (p Pattern) Match(host string, port uint16) bool {
	q, ok := p.parse()
	if !ok || q.port != 0 && port != 0 && q.port != port {
		return false
	}
	a, err := netip.ParseAddr(host)
	switch {
	case q.prefix.IsValid():
		return err == nil && q.prefix.Contains(a)
	case q.below:
		return err != nil && strings.HasSuffix(host, "."+q.name)
	}
	return err != nil && host == q.name
}

// HasPort reports whether the pattern has a port.
func (p Pattern) HasPort() bool {
	q, ok := p.parse()
	return ok && q.port != 0
}

// isAddress reports whether the pattern is an address or a prefix of addresses.
func (p Pattern) isAddress() bool {
	q, ok := p.parse()
	return ok && q.prefix.IsValid()
}

type parsed struct {
	name   string
	below  bool
	prefix netip.Prefix
	port   uint16
}

func (p Pattern) parse() (parsed, bool) {
	var q parsed
	host := strings.ToLower(string(p))
	if prefix, err := netip.ParsePrefix(host); err == nil {
		q.prefix = prefix.Masked()
		return q, !prefix.Addr().Is4In6()
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return q.address(a)
	}
	if at := strings.LastIndexByte(host, ':'); at >= 0 {
		port, err := strconv.ParseUint(host[at+1:], 10, 16)
		if err != nil || port == 0 {
			return q, false
		}
		q.port, host = uint16(port), host[:at]
		if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
			return q, false
		}
	}
	host, q.below = strings.CutPrefix(host, "*.")
	name, err := CanonicalHost(host)
	if err != nil {
		return q, false
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return q.address(a)
	}
	q.name = name
	return q, true
}

func (q parsed) address(a netip.Addr) (parsed, bool) {
	a = a.Unmap()
	q.prefix = netip.PrefixFrom(a, a.BitLen())
	return q, a.Zone() == "" && !q.below
}
