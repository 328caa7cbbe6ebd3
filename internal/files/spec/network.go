package spec

import (
	"fmt"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/host/egress"
)

// validateNetwork checks the lists of hosts against the network setting.
func (p *Permissions) validateNetwork(r *decode.Report) {
	hosts(r, "tools.permissions.hosts", p.Hosts)
	hosts(r, "tools.permissions.private_hosts", p.PrivateHosts)
	switch list := p.Network == string(egress.NetworkAllowlist); {
	case list && len(p.Hosts) == 0:
		r.At("tools.permissions.network", "a list in tools.permissions.hosts", "is allowlist, and there is no list")
	case !list && len(p.Hosts) > 0:
		r.At("tools.permissions.hosts", "network: allowlist beside it", "would bound nothing")
	}
	if p.Network == string(egress.NetworkNone) && len(p.PrivateHosts) > 0 {
		r.At("tools.permissions.private_hosts", "network: host or allowlist beside it", "would open nothing, because network is none")
	}
}

func hosts(r *decode.Report, path string, list []string) {
	for i, host := range list {
		if !egress.Pattern(host).Valid() {
			r.At(fmt.Sprintf("%s[%d]", path, i), "a host such as example.com, *.example.com, 10.0.0.0/8 or localhost:8080", "%q is no host", host)
		}
	}
}

// Egress returns the hosts that calls may reach.
func (p *Permissions) Egress() egress.Rules {
	if p == nil {
		return egress.Rules{}
	}
	return egress.Rules{Network: egress.Network(p.Network), Hosts: patterns(p.Hosts), Private: patterns(p.PrivateHosts)}
}

func patterns(hosts []string) []egress.Pattern {
	var out []egress.Pattern
	for _, h := range hosts {
		out = append(out, egress.Pattern(h))
	}
	return out
}
