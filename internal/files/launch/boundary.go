package launch

import (
	"errors"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/tool"
)

// Boundary is the sandbox that a run would have on this machine, and what it
// is to one call.
type Boundary struct {
	// Tier is that of the run's commands, Why why there is no stronger one.
	Tier sandbox.Tier `json:"tier"`
	Why  string       `json:"why,omitempty"`
	// Holds is what the sandbox holds; nil where there is none.
	Holds *event.Confinement `json:"holds,omitempty"`
	// Refused is why a run would not start here; empty where it would.
	Refused string `json:"refused,omitempty"`
	// Programs says that the tool runs programs, which the sandbox is for;
	// other tools run in Pawl itself. Inside says that this call would run in
	// the sandbox.
	Programs bool `json:"programs"`
	Inside   bool `json:"inside"`
	// Closed is what the call names and would not get, because of the sandbox.
	Closed []string `json:"closed,omitempty"`
}

// boundary is what a confinement is to a call of t that policy gave a verdict
// on; boxed says that a rule puts the call into the sandbox.
func (c confinement) boundary(refusal error, t tool.Tool, boxed bool, facts *event.Facts) Boundary {
	b := Boundary{Tier: c.tier, Why: c.why, Holds: c.held(), Programs: t.Sandboxed}
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
