package spec

import "github.com/pawlrun/pawl/internal/files/decode"

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
