package cli

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// permission reports whether a machine enforces one setting of tools.permissions
// for commands. A run whose file has an unenforced setting is refused.
type permission struct {
	Setting string `json:"setting"`
	Held    bool   `json:"held"`
	Detail  string `json:"detail,omitempty"`
}

// permissions returns the permissions of a tier.
func permissions(tier sandbox.Tier) []permission {
	var all []permission
	add := func(setting string, p sandbox.Policy, detail string) {
		err := tier.Holds(p)
		if err == nil {
			detail = ""
		}
		all = append(all, permission{setting, err == nil, detail})
	}
	for _, network := range []egress.Network{egress.NetworkNone, egress.NetworkAllowlist, egress.NetworkHost} {
		detail := "say network: host"
		if network == egress.NetworkAllowlist {
			detail = "only web.fetch keeps to an allow-list here; with shell.exec, use network: none or network: host"
		}
		add("network: "+string(network), sandbox.Policy{Filesystem: sandbox.FilesystemFull, Egress: egress.Rules{Network: network}}, detail)
	}
	host := egress.Rules{Network: egress.NetworkHost}
	// Without a tier, policy denies every command that may write.
	all = append(all, permission{Setting: "filesystem: none", Held: true}, permission{Setting: "filesystem: " + string(sandbox.FilesystemReadOnly), Held: true})
	for _, files := range []sandbox.Filesystem{sandbox.FilesystemReadWrite, sandbox.FilesystemFull} {
		add("filesystem: "+string(files), sandbox.Policy{Filesystem: files, Egress: host}, "say filesystem: full")
	}
	all = append(all, permission{Setting: "sandbox: required", Held: tier != sandbox.None})
	for _, demanded := range sandbox.Tiers() {
		if demanded != sandbox.None {
			all = append(all, permission{Setting: "sandbox: " + string(demanded), Held: tier.AtLeast(demanded)})
		}
	}
	return all
}

// notHeld returns the settings of some kinds that a tier does not enforce.
func notHeld(tier sandbox.Tier, kinds ...string) []string {
	var settings []string
	for _, p := range permissions(tier) {
		for _, kind := range kinds {
			if !p.Held && strings.HasPrefix(p.Setting, kind+":") {
				settings = append(settings, p.Setting)
			}
		}
	}
	return settings
}

// permissionLines returns the permissions as text for people.
func permissionLines(all []permission) string {
	var b strings.Builder
	b.WriteString("\ntools.permissions of agent files with shell.exec, on this machine:\n")
	for _, p := range all {
		verdict := "held"
		if !p.Held {
			verdict = "refused"
		}
		if p.Detail != "" {
			verdict += "; " + p.Detail
		}
		fmt.Fprintf(&b, "  %-27s %s\n", p.Setting, verdict)
	}
	return b.String()
}
