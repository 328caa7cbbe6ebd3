package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// onDemand uses the sandbox only for calls for which a rule requires it.
const onDemand = "on-demand"

// OnDemand reports whether commands run outside the sandbox unless a rule requires it.
func (p *Permissions) OnDemand() bool { return p != nil && p.Sandbox == onDemand }

// GitOf returns the setting for commands that write a git repository; empty if there is
// none.
func (p *Permissions) GitOf() string {
	if p == nil {
		return ""
	}
	return p.Git
}

// Limits returns the limits on one command; 0 if the file sets none.
func (p *Permissions) Limits() (memoryBytes int64, processes int) {
	if p == nil {
		return 0, 0
	}
	if p.MemoryMB != nil {
		memoryBytes = int64(*p.MemoryMB) << 20
	}
	if p.Processes != nil {
		processes = *p.Processes
	}
	return memoryBytes, processes
}

// Boxes reports whether some rule puts calls into the sandbox.
func (t *Tools) Boxes() bool {
	for _, rule := range t.Rules {
		if rule.Sandbox != "" {
			return true
		}
	}
	return false
}

func (p *Permissions) validate(r *decode.Report, t *Tools) {
	p.validateNetwork(r)
	decode.Within(r, "tools.permissions.memory_mb", p.MemoryMB, 16, 1<<30)
	decode.Within(r, "tools.permissions.processes", p.Processes, 1, 1<<20)
	if (p.Network == "none" || p.Network == "allowlist") && len(t.Provider) > 0 {
		r.At("tools.permissions.network", "a file without tools.provider", "is %s, and the provider's tools reach other machines", p.Network)
	}
}

// ApprovalSettings set who decides about a gated call, how long a decision may take,
// and what happens without one.
type ApprovalSettings struct {
	// Mode sets who decides; "" asks a person if one is present, and otherwise parks.
	Mode    string   `yaml:"mode,omitempty" oneof:"wait park callback bypass"`
	Timeout *Seconds `yaml:"timeout,omitempty"`
	// OnTimeout sets what happens if no answer comes in time.
	OnTimeout string `yaml:"on_timeout,omitempty" oneof:"reject stop"`
}

// maxApprovalSeconds is a year, longer than any question stays relevant.
const maxApprovalSeconds = 366 * 86_400

func (s *ApprovalSettings) validate(r *decode.Report, path string) {
	if t := s.Timeout; t != nil && !r.Reported(path+".timeout") && !(*t >= 1 && *t <= maxApprovalSeconds) {
		r.At(path+".timeout", "1 second to 366 days", "is %g seconds", float64(*t))
	}
	if s.Mode == "bypass" {
		r.Warn(path+".mode", "every gated call is approved without asking, and that is recorded with each of them")
	}
	if s.OnTimeout != "" && s.Timeout == nil && s.Mode != "wait" {
		r.At(path+".on_timeout", "a timeout beside it", "never comes to pass, because a decision may take for ever")
	}
}

// validateDeclarations checks the file's declarations that replace those of the tools.
func (t *Tools) validateDeclarations(r *decode.Report, o Options) {
	for _, name := range slices.Sorted(maps.Keys(t.Effects)) {
		path := decode.Join("tools.effects", name)
		t.usable(r, path, name, o)
		if e := event.Effect(t.Effects[name]); e == event.EffectPure || e == event.EffectIdempotent {
			r.Warn(path, "a call of %s that a crash or a failure cuts off is run again", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Risks)) {
		t.usable(r, decode.Join("tools.risks", name), name, o)
	}
}

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

// Policy converts the rule for package policy.
func (p Rule) Policy() policy.Rule {
	rule := policy.Rule{Args: p.Args, Path: policy.Pattern(p.Path), Host: p.Host, Command: p.Command, Reason: p.Reason}
	switch {
	case p.Deny != "":
		rule.Decision, rule.Tool = event.DecisionDeny, p.Deny
	case p.Ask != "":
		rule.Decision, rule.Tool = event.DecisionAsk, p.Ask
	case p.Sandbox != "":
		rule.Decision, rule.Tool = event.DecisionSandbox, p.Sandbox
	default:
		rule.Decision, rule.Tool = event.DecisionAllow, p.Allow
	}
	return rule
}

func (p Rule) validate(r *decode.Report, path string, t *Tools, o Options) {
	decode.Single(r, path, "one of allow, ask, deny and sandbox, with the name of a tool", p.Allow != "", p.Ask != "", p.Deny != "", p.Sandbox != "")
	for _, named := range []struct{ key, tool string }{{"allow", p.Allow}, {"ask", p.Ask}, {"deny", p.Deny}, {"sandbox", p.Sandbox}} {
		if named.tool == "" || !strings.Contains(named.tool, "*") && !t.known(r, path+"."+named.key, named.tool, o) {
			continue
		}
		if o.Offers != nil && !slices.ContainsFunc(o.Offers(t), func(name string) bool { return policy.MatchTool(named.tool, name) }) {
			r.Warn(path+"."+named.key, "the file offers no tool %s, so the rule decides nothing", named.tool)
		}
	}
	p.Policy().Check(func(key string) policy.Report { return reporting(r, path+"."+key) })
}

// reporting reports the problems of one place.
func reporting(r *decode.Report, path string) policy.Report {
	return func(expected, format string, args ...any) { r.At(path, expected, format, args...) }
}
