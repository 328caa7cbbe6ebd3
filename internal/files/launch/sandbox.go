package launch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
)

// ErrSandbox is returned for a run that needs a sandbox, or a stronger one than
// this machine has.
var ErrSandbox = errors.New("launch: sandbox")

// confinement is the sandbox of one run.
type confinement struct {
	tier sandbox.Tier
	// why explains why no stronger tier is available.
	why    string
	policy sandbox.Policy
	box    *sandbox.Box
	// boxes holds the sandboxes of programs whose network differs from the
	// policy's.
	boxes map[egress.Network]*sandbox.Box
	// onDemand means that only calls selected by a rule run in the box.
	onDemand bool
}

// confine opens the strongest available sandbox for the commands of a run. It
// returns an error if the file, or the tier that the run began in, demands more.
func (o Options) confine(a *spec.Agent, pinned string) (confinement, error) {
	c, err := o.confinement(a, pinned)
	if err != nil || c.tier == sandbox.None {
		return c, err
	}
	// Files created while a command runs are not hidden from it.
	if state, err := StateDir(); err == nil {
		if _, within := inside(o.Workspace, real(state)); !within {
			_ = os.MkdirAll(state, 0o700)
		}
	}
	if c.box, err = o.Sandbox.Open(c.tier, c.policy); err != nil {
		if errors.Is(err, sandbox.ErrUnavailable) {
			return c, refusedf("%w", err)
		}
		return c, fmt.Errorf("launch: %w", err)
	}
	c.policy = c.box.Policy()
	if err := o.openBoxes(a, &c); err != nil {
		c.box.Close()
		for _, box := range c.boxes {
			box.Close()
		}
		return c, err
	}
	return c, nil
}

// confinement returns the sandbox that a run would have, without opening it. If the
// run would be refused, the error is the reason and the confinement is still what
// is available.
func (o Options) confinement(a *spec.Agent, pinned string) (confinement, error) {
	c := confinement{tier: sandbox.None, policy: o.sandboxPolicy(a), onDemand: a.Tools.Permissions.OnDemand()}
	c.why = "this program has not checked for one"
	if o.Sandbox != nil {
		c.tier, c.why = o.Sandbox.Tier(), o.Sandbox.Why()
	}
	if pinned != "" && !c.tier.AtLeast(sandbox.Tier(pinned)) {
		return c, refusedf("the run began in the sandbox tier %s, and here is only %s (%s)", pinned, c.tier, c.why)
	}
	if err := demanded(a, c.tier, c.why); err != nil || c.tier == sandbox.None {
		return c, err
	}
	c.policy.Protected, c.policy.Hidden = protect(o.permissions(a)), o.hidden(c.tier)
	if a.Tools.Permissions.GitOf() == string(policy.GitAllow) {
		c.policy.Open = o.repositoryGrants()
	}
	if err := errors.Join(o.checkJournal(a, c.tier), o.checkDatabase(a, c.policy)); err != nil {
		return c, err
	}
	err := c.tier.Holds(c.policy)
	switch {
	case err == nil:
		return c, nil
	case !runsCommands(a):
		// No command runs in the box; web.fetch applies the list itself.
		c.policy.Egress = egress.Rules{Network: egress.NetworkNone}
		return c, nil
	}
	return c, refusedf("tools.permissions.network is %s, which this machine does not hold for commands (%w; %s); say network: none or network: host, "+
		"take shell.exec out of tools.allow, because web.fetch alone needs no sandbox, or get a stronger tier", c.policy.Egress.Network, err, c.why)
}

// checkDatabase returns an error if commands in a sandbox could reach the database of the
// journal, in which they could approve their own calls.
func (o Options) checkDatabase(a *spec.Agent, p sandbox.Policy) error {
	if len(o.Databases) == 0 || !runsCommands(a) {
		return nil
	}
	key := ""
	for _, c := range a.Tools.Commands {
		if c.Network == string(egress.NetworkHost) {
			key = "the network of " + c.Name
		}
	}
	if p.Egress.Network == egress.NetworkHost {
		key = "tools.permissions.network"
	}
	if key == "" {
		return nil
	}
	return refusedf("%s is host, which reaches the database of the journal; say network: allowlist, and name in tools.permissions.hosts what commands need", key)
}

// inside reports whether every command runs in a sandbox.
func (c confinement) inside() bool { return c.tier != sandbox.None && !c.onDemand }

// offline reports whether every command runs in a sandbox without a network.
func (c confinement) offline() bool {
	return c.inside() && c.policy.Egress.Network == egress.NetworkNone
}

// demanded returns an error for a tier weaker than the file demands, and for
// permissions that no sandbox would enforce.
func demanded(a *spec.Agent, tier sandbox.Tier, why string) error {
	if a.Tools.Boxes() && tier == sandbox.None {
		return refusedf("tools.rules puts calls into the sandbox, and this machine has none (%s)", why)
	}
	p := a.Tools.Permissions
	if tier == sandbox.None || p.OnDemand() {
		for _, c := range a.Tools.Commands {
			if c.Network != "" && c.Network != string(egress.NetworkHost) {
				return refusedf("the network of %s is %s, which nothing holds for programs that run without a sandbox (%s); say network: host, or get a sandbox that works",
					c.Name, c.Network, why)
			}
		}
	}
	if p == nil {
		return nil
	}
	switch demand := p.Sandbox; {
	case demand == "required" && tier == sandbox.None:
		return refusedf("tools.permissions.sandbox is required, and this machine has none (%s)", why)
	case demand != "" && demand != "required" && !p.OnDemand() && !tier.AtLeast(sandbox.Tier(demand)):
		return refusedf("tools.permissions.sandbox is %s, and this machine has only %s (%s)", demand, tier, why)
	}
	if tier != sandbox.None && !p.OnDemand() || !runsFreely(a) {
		return nil
	}
	mend := "get a sandbox that works, such as bubblewrap"
	if p.OnDemand() {
		why, mend = "tools.permissions.sandbox is on-demand", "take that out"
	}
	for _, held := range []struct{ key, value, unbound string }{{"network", p.Network, "host"}, {"filesystem", p.Filesystem, "full"}} {
		if held.value != "" && held.value != held.unbound {
			return refusedf("tools.permissions.%s is %s, which nothing holds for the programs that shell.exec runs without a sandbox (%s); "+
				"say %s: %s to let them do what you can, or %s", held.key, held.value, why, held.key, held.unbound, mend)
		}
	}
	return nil
}

// runsFreely reports whether programs with unknown effects may run. Under the
// tighter bounds policy denies them.
func runsFreely(a *spec.Agent) bool {
	if fs := a.Tools.Permissions.Filesystem; fs == string(policy.FilesystemNone) || fs == string(policy.FilesystemReadOnly) {
		return false
	}
	return runsCommands(a)
}

func refusedf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format+"; 'pawl doctor' says what this machine can do", append([]any{ErrSandbox}, args...)...)
}

// sandboxPolicy converts the file's settings to a sandbox policy. The default is
// the workspace and no network.
func (o Options) sandboxPolicy(a *spec.Agent) sandbox.Policy {
	p := sandbox.Policy{Workspace: o.Workspace, Egress: a.Tools.Permissions.Egress()}
	p.Readable = append(o.repositoryReads(), o.commandReads(a)...)
	p.Limits.MemoryBytes, p.Limits.Processes = a.Tools.Permissions.Limits()
	switch given := a.Tools.Permissions; {
	case given == nil:
	case given.Filesystem == string(policy.FilesystemNone):
		p.Filesystem = sandbox.FilesystemReadOnly
	default:
		p.Filesystem = sandbox.Filesystem(given.Filesystem)
	}
	if p.Egress.Network == "" {
		p.Egress.Network = egress.NetworkNone
	}
	p.Egress.Closed = o.Databases
	return p
}

// protection answers the sandbox's questions about what policy protects. The
// sandbox checks every file of a workspace.
type protection struct {
	policy.Guard
	patterns []policy.Pattern
}

var _ sandbox.Protection = protection{}

func protect(r policy.Rules) protection {
	own := slices.Concat(r.Protected, policy.Builtin())
	return protection{policy.NewGuard(slices.Concat(own, r.Nested)...), own}
}

// Named implements [sandbox.Protection]. It skips a nested repository that was
// removed.
func (p protection) Named() []string {
	var names []string
	for _, pattern := range p.patterns {
		name, tree, ok := spelledOut(pattern)
		switch {
		case ok && tree:
			names = append(names, name+"/")
		case ok:
			names = append(names, name)
		}
	}
	return names
}

// pin records the run's sandbox in its first event.
func (c confinement) pin(started *event.RunStarted) {
	started.Sandbox, started.Confinement = string(c.tier), c.enforced()
}

// enforced returns what the sandbox enforces, or nil without a sandbox.
func (c confinement) enforced() *event.Confinement {
	if c.tier == sandbox.None {
		return nil
	}
	held := &event.Confinement{
		OnDemand: c.onDemand,
		Network:  string(c.policy.Egress.Network), Filesystem: string(cmp.Or(c.policy.Filesystem, sandbox.FilesystemReadWrite)),
		MemoryBytes: c.policy.Limits.MemoryBytes, Processes: c.policy.Limits.Processes,
	}
	for _, h := range c.policy.Egress.Hosts {
		held.Hosts = append(held.Hosts, string(h))
	}
	return held
}

// shellTool is the tool that runs commands.
const shellTool = machine.CommandTool

// exposes reports whether commands run outside a sandbox.
func (c confinement) exposes(tools *tool.Set) bool {
	_, runs := tools.Lookup(shellTool)
	return runs && !c.inside()
}

// undecided warns about commands that run outside a sandbox without approval
// because the file allows it.
func (c confinement) undecided(r policy.Rules, tools *tool.Set) []string {
	if !c.exposes(tools) {
		return nil
	}
	program := event.ToolCall{Tool: shellTool, Facts: &event.Facts{
		Risk: event.RiskExecute, Unsandboxed: true, Commands: []event.Command{{Words: []string{"some-program"}}},
	}}
	if r.Decide(&program).Decision != event.DecisionAllow {
		return nil
	}
	key := "tools.approvals." + shellTool + ": never"
	if r.Mode == policy.ModeBypass {
		key = "tools.mode: bypass"
	}
	return []string{fmt.Sprintf("%s: commands run without approval and without a sandbox (%s); such a command could approve calls in your place",
		key, cmp.Or(c.why, "on-demand"))}
}

// Boundary is the sandbox that a run would have on this machine, and its effect on
// one call.
type Boundary struct {
	// Tier is the tier of the run's commands; Why explains why no stronger one is
	// available.
	Tier sandbox.Tier `json:"tier"`
	Why  string       `json:"why,omitempty"`
	// Holds is what the sandbox enforces; nil without a sandbox.
	Holds *event.Confinement `json:"holds,omitempty"`
	// Refused is why a run would not start here; empty if it would.
	Refused string `json:"refused,omitempty"`
	// Programs reports that the tool runs programs, which the sandbox is for; other
	// tools run inside Pawl. Inside reports that this call would run in the
	// sandbox.
	Programs bool `json:"programs"`
	Inside   bool `json:"inside"`
	// Closed lists what the call names and the sandbox would deny.
	Closed []string `json:"closed,omitempty"`
}

// boundary describes the effect of a confinement on a call of t with the given
// verdict. boxed reports that a rule puts the call into the sandbox.
func (c confinement) boundary(refusal error, t tool.Tool, boxed bool, facts *event.Facts) Boundary {
	b := Boundary{Tier: c.tier, Why: c.why, Holds: c.enforced(), Programs: t.Sandboxed}
	if refusal != nil {
		b.Refused = strings.TrimPrefix(refusal.Error(), ErrSandbox.Error()+": ")
	}
	if boxed && !t.Sandboxed {
		b.Closed = append(b.Closed, "the call: a rule puts it into the sandbox, and "+t.Name+" does not run in one")
	}
	b.Inside = t.Sandboxed && c.tier != sandbox.None && (boxed || !c.onDemand)
	if !b.Inside || facts == nil {
		return b
	}
	for i, host := range facts.Hosts {
		_, err := c.policy.Egress.Host(host, facts.Port(i))
		if r, ok := errors.AsType[*egress.Refusal](err); ok && c.policy.Egress.Network != egress.NetworkHost {
			b.Closed = append(b.Closed, facts.HostPort(i)+": "+r.Why)
		}
	}
	return b
}
