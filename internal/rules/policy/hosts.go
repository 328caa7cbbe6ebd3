package policy

import (
	"errors"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
)

// hosts applies the limits on the network to a call that only reaches other machines.
// The sandbox limits programs, and the dialer checks the address that a name resolves
// to.
func (r Rules) hosts(c *event.ToolCall) []Verdict {
	if !reaches(c) {
		return nil
	}
	var verdicts []Verdict
	for i, host := range c.Facts.Hosts {
		_, err := r.Network.Host(host, c.Facts.Port(i))
		if refusal, ok := errors.AsType[*egress.Refusal](err); ok {
			verdicts = append(verdicts, Verdict{Decision: event.DecisionDeny, Rule: refusal.Rule, Reason: c.Facts.HostPort(i) + " may not be reached: " + refusal.Why})
		}
	}
	return verdicts
}

// reaches reports whether a call is known to reach other machines and to do nothing
// else.
func reaches(c *event.ToolCall) bool {
	return c.ReadOnly && c.Labels.Outgoing && c.Facts != nil && c.Facts.Risk == event.RiskSend &&
		len(c.Facts.Paths) == 0 && len(c.Facts.Commands) == 0
}
