package egress_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/host/egress"
)

func TestAnAddressIsWhatItLeadsTo(t *testing.T) {
	for address, want := range map[string]egress.Class{
		"8.8.8.8": egress.Public, "2606:4700::1111": egress.Public, "172.32.0.1": egress.Public, "100.128.0.1": egress.Public,
		"127.0.0.1": egress.Loopback, "127.255.255.254": egress.Loopback, "::1": egress.Loopback,
		"10.1.2.3": egress.Private, "172.16.0.1": egress.Private, "192.168.1.1": egress.Private, "fc00::1": egress.Private, "fd12::1": egress.Private,
		"100.64.0.1": egress.Shared, "100.127.255.255": egress.Shared,
		"169.254.1.1": egress.LinkLocal, "fe80::1": egress.LinkLocal, "fe80::1%eth0": egress.LinkLocal,
		"169.254.169.254": egress.Metadata, "fd00:ec2::254": egress.Metadata, "100.100.100.200": egress.Metadata, "168.63.129.16": egress.Metadata, "fd00:42::42": egress.Metadata, "fd00:c1::a9fe:a9fe": egress.Metadata,
		"224.0.0.1": egress.Multicast, "239.255.255.250": egress.Multicast, "ff02::1": egress.Multicast,
		"0.0.0.0": egress.Unspecified, "::": egress.Unspecified,
		"0.1.2.3": egress.Reserved, "255.255.255.255": egress.Reserved, "240.0.0.1": egress.Reserved, "198.18.0.1": egress.Reserved, "192.0.2.1": egress.Reserved,
		"2001:db8::1": egress.Reserved, "fec0::1": egress.Reserved, "4000::1": egress.Reserved,
		// An IPv4 address that an IPv6 one carries is judged, not its cover.
		"::ffff:127.0.0.1": egress.Loopback, "::ffff:169.254.169.254": egress.Metadata, "::ffff:8.8.8.8": egress.Public,
		"64:ff9b::a9fe:a9fe": egress.Metadata, "64:ff9b::10.0.0.1": egress.Private, "64:ff9b::8.8.8.8": egress.Public, "64:ff9b:1::8.8.8.8": egress.Reserved,
		"::127.0.0.1": egress.Loopback, "::10.0.0.1": egress.Private,
		// Where a tunnel leads cannot be told.
		"2002:7f00:1::": egress.Reserved, "2002:808:808::": egress.Reserved, "2001:0:1::1": egress.Reserved,
	} {
		if got := egress.Classify(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
	if got := egress.Classify(netip.Addr{}); got != egress.Reserved {
		t.Errorf("no address is %s", got)
	}
}

func TestAHostHasOneSpelling(t *testing.T) {
	for host, want := range map[string]string{
		"Example.COM": "example.com", "example.com.": "example.com", "a_b.example.com": "a_b.example.com",
		"[::1]": "::1", "::FFFF:127.0.0.1": "127.0.0.1", "2001:DB8:0:0::1": "2001:db8::1", "localhost": "localhost",
		// What some resolvers read as an address is no name.
		"127.1": "", "2130706433": "", "0x7f.1": "", "0177.0.0.01": "", "0x7f000001": "", "127.0.0.1.": "127.0.0.1", "example.0x": "", "1.2.3.4.5": "",
		"": "", ".": "", "a..b": "", "a b": "", "example.com/x": "", "user@example.com": "", "bücher.example": "", "example.com:80": "",
		"fe80::1%eth0": "", "ex\x00ample.com": "", "*.example.com": "", strings.Repeat("a", 64) + ".com": "", strings.Repeat("a.", 130) + "com": "",
	} {
		got, err := egress.CanonicalHost(host)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q (%v), want %q", host, got, err, want)
		}
	}
}

func TestAPatternNamesHostsOrAddresses(t *testing.T) {
	for _, tt := range []struct {
		pattern egress.Pattern
		host    string
		port    uint16
		want    bool
	}{
		{"example.com", "example.com", 443, true},
		{"Example.com", "example.com", 443, true},
		{"example.com", "www.example.com", 443, false},
		{"example.com", "example.com.evil.org", 443, false},
		{"*.example.com", "www.example.com", 443, true},
		{"*.example.com", "a.b.example.com", 443, true},
		{"*.example.com", "example.com", 443, false},
		{"*.example.com", "evilexample.com", 443, false},
		{"example.com:443", "example.com", 443, true},
		{"example.com:443", "example.com", 80, false},
		{"example.com:443", "example.com", 0, true},
		{"10.0.0.0/8", "10.1.2.3", 80, true},
		{"10.0.0.0/8", "11.1.2.3", 80, false},
		{"10.0.0.0/8", "10.example.com", 80, false},
		{"192.0.2.1", "192.0.2.1", 80, true},
		{"::ffff:192.0.2.1", "192.0.2.1", 80, true},
		{"[::1]:8080", "::1", 8080, true},
		{"[::1]:8080", "::1", 8081, false},
		{"::1", "::1", 1, true},
	} {
		if !tt.pattern.Valid() {
			t.Errorf("%s is not valid", tt.pattern)
		}
		if got := tt.pattern.Match(tt.host, tt.port); got != tt.want {
			t.Errorf("%s matches %s:%d: %v", tt.pattern, tt.host, tt.port, got)
		}
	}
	for _, bad := range []egress.Pattern{
		"", "*", "*.", "*.*", "a*.example.com", "example.com:", "example.com:0", "example.com:99999", "https://example.com", "example.com/x",
		"10.0.0.0/33", "*.10.0.0.1", "a:b:80", "127.1",
	} {
		if bad.Valid() {
			t.Errorf("%q is valid", bad)
		}
	}
}

func TestWhatMayBeReached(t *testing.T) {
	list := egress.Rules{Network: egress.NetworkAllowlist, Hosts: []egress.Pattern{"*.example.com", "93.184.0.0/16", "local.test"}}
	private := egress.Rules{Private: []egress.Pattern{"intranet.test", "127.0.0.1:8080", "*.lab.test"}}
	for _, tt := range []struct {
		name  string
		rules egress.Rules
		host  string
		to    string
		rule  string
	}{
		{"a public machine", egress.Rules{}, "example.com", "93.184.216.34:443", ""},
		{"a name that leads to this machine", egress.Rules{}, "rebind.test", "127.0.0.1:80", "tools.permissions.private_hosts"},
		{"an address of this machine", egress.Rules{}, "127.0.0.1", "127.0.0.1:80", "tools.permissions.private_hosts"},
		{"the same under its cover", egress.Rules{}, "rebind.test", "[::ffff:127.0.0.1]:80", "tools.permissions.private_hosts"},
		{"nothing", egress.Rules{Network: egress.NetworkNone}, "example.com", "93.184.216.34:443", "tools.permissions.network: none"},
		{"an unknown bound", egress.Rules{Network: "some"}, "example.com", "93.184.216.34:443", "tools.permissions.network: some"},
		{"a host of the list", list, "www.example.com", "93.185.1.1:443", ""},
		{"an address of the list", list, "other.org", "93.184.216.34:443", ""},
		{"neither", list, "other.org", "93.185.1.1:443", "tools.permissions.hosts"},
		{"a host of the list with a private address", list, "local.test", "10.0.0.1:443", "tools.permissions.private_hosts"},
		{"a private host by its name", private, "intranet.test", "10.0.0.1:443", ""},
		{"a private host below a name", private, "a.lab.test", "100.64.0.1:443", ""},
		{"a named address", private, "localhost", "127.0.0.1:8080", ""},
		{"another port of it", private, "localhost", "127.0.0.1:5432", "tools.permissions.private_hosts"},
		{"a name never leads to credentials", private, "intranet.test", "169.254.169.254:80", "tools.permissions.private_hosts"},
		{"nor to the link", private, "intranet.test", "169.254.7.7:80", "tools.permissions.private_hosts"},
		{"but an address does", egress.Rules{Private: []egress.Pattern{"169.254.169.254"}}, "metadata.test", "169.254.169.254:80", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.rules.Address(tt.host, netip.MustParseAddrPort(tt.to))
			refusal, refused := errors.AsType[*egress.Refusal](err)
			switch {
			case tt.rule == "" && err != nil:
				t.Error(err)
			case tt.rule != "" && (!refused || refusal.Rule != tt.rule):
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestANameIsJudgedBeforeItIsLookedUp(t *testing.T) {
	rules := egress.Rules{Network: egress.NetworkAllowlist, Hosts: []egress.Pattern{"*.example.com", "127.0.0.1"}}
	for host, reached := range map[string]bool{
		"WWW.example.com.": true, "example.org": false, "127.0.0.1": false, "[::1]": false, "2130706433": false,
	} {
		name, err := rules.Host(host, 443)
		if (err == nil) != reached || reached && name != "www.example.com" {
			t.Errorf("%s: %q, %v", host, name, err)
		}
	}
}

// FuzzRules checks refusals: no address that is not public is reached unless a rule
// names it, in any spelling.
func FuzzRules(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "example.com", "0x7f.1", "[::1]", "*.example.com:80", "10.0.0.0/8", "fe80::1%lo"} {
		f.Add(s, "example.com")
	}
	f.Fuzz(func(t *testing.T, host, pattern string) {
		name, err := egress.Rules{}.Host(host, 80)
		if err == nil {
			again, err := egress.CanonicalHost(name)
			if err != nil || again != name {
				t.Fatalf("%q became %q and then %q (%v)", host, name, again, err)
			}
			if a, err := netip.ParseAddr(name); err == nil && egress.Classify(a) != egress.Public {
				t.Fatalf("%q is reached, and is %s", host, egress.Classify(a))
			}
		}
		p := egress.Pattern(pattern)
		if !p.Valid() && (p.Match(host, 80) || name != "" && p.Match(name, 80)) {
			t.Fatalf("%q is not valid and matches %q", pattern, host)
		}
		if a, err := netip.ParseAddr(host); err == nil && egress.Classify(a) != egress.Public {
			if (egress.Rules{}).Address("example.com", netip.AddrPortFrom(a, 80)) == nil {
				t.Fatalf("%s is reached", a)
			}
		}
	})
}
