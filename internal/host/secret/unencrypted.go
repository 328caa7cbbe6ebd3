package secret

import (
	"encoding/json"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// plainAddress matches an address whose traffic is not encrypted.
var plainAddress = regexp.MustCompile(`(?i)\b(?:http|ws|ftp|telnet)://([^/?#\s\\]*)`)

// inPlainSight returns a machine that a call names with an unencrypted address, among
// those that it reaches. It ignores this machine, because such traffic does not leave
// the machine.
func inPlainSight(args json.RawMessage, reached []string) (host string, found bool) {
	var doc any
	if json.Unmarshal(args, &doc) != nil {
		return "", false
	}
	eachText(doc, func(text string) {
		for _, m := range plainAddress.FindAllStringSubmatch(text, -1) {
			name := hostIn(m[1])
			if !loopback(name) && (name == "" || slices.Contains(reached, name)) {
				host, found = name, true
			}
		}
	})
	return host, found
}

// eachText visits every string of a document.
func eachText(doc any, visit func(string)) {
	switch v := doc.(type) {
	case string:
		visit(v)
	case []any:
		for _, e := range v {
			eachText(e, visit)
		}
	case map[string]any:
		for name, e := range v {
			visit(name)
			eachText(e, visit)
		}
	}
}

// hostIn returns the machine in the authority of an address; empty if it is not a plain
// name.
func hostIn(authority string) string {
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	name, err := egress.CanonicalHost(host)
	if err != nil {
		return ""
	}
	return name
}

func loopback(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
