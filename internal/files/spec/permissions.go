package spec

import "github.com/pawlrun/pawl/internal/files/decode"

// onDemand leaves the sandbox to the calls that a rule puts there.
const onDemand = "on-demand"

// OnDemand reports whether commands run outside the sandbox, unless a rule says
// otherwise.
func (p *Permissions) OnDemand() bool { return p != nil && p.Sandbox == onDemand }

// GitOf is what the file says of commands that write a git repository; empty where it
// says nothing.
func (p *Permissions) GitOf() string {
	if p == nil {
		return ""
	}
	return p.Git
}

// Limits are the bounds on one command that the file gives; 0 where it gives
// none.
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
