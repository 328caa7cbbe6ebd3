package agent

import (
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/tree"
)

// applyForked goes on from another run's events as a run of its own. What that
// run spent is not this one's, and what somebody asked of it neither; the
// count of cycles and the prefix of the requests go on.
func (m *Machine) applyForked(e *event.Event, d event.RunForked) error {
	if m.run.phase == phaseTools || m.run.phase == phaseEnding || m.model.inFlight {
		return fmt.Errorf("%w: run %s forks amid an open call of cycle %d", ErrMisfit, e.Run, m.run.cycle)
	}
	target := m.model.target
	if len(d.Config) > 0 {
		m.run.cfg, target = Config{}, 0
		if err := json.Unmarshal(d.Config, &m.run.cfg); err != nil {
			return fmt.Errorf("agent: decode config of fork %s: %w", e.Run, err)
		}
		m.permissions.policy = m.run.cfg.Policy.Version()
		if len(m.run.cfg.Targets) == 0 {
			return fmt.Errorf("agent: fork %s names no model", e.Run)
		}
		if m.run.cycle == 0 {
			m.hooks.before = hooks{due: m.run.cfg.hookAfter(nil, event.HookBeforeRun, "")}
		}
	}
	m.messages.system = prompt(m.run.cfg.System, m.messages.fence.Active())
	for _, r := range d.Results {
		if !m.messages.history.Replace(r.CallID, m.messages.instead(r.Output)) {
			return fmt.Errorf("%w: fork %s changes the result of %s, which has none", ErrMisfit, e.Run, r.CallID)
		}
		if c := m.calls.touch(r.CallID); c != nil && c.result != nil {
			c.result = &event.ToolResult{CallID: c.result.CallID, Tool: c.result.Tool, Output: r.Output, Untrusted: c.result.Untrusted, Private: c.result.Private}
		}
	}
	m.run.Account = tree.Account{Spent: budget.Spent{Cycles: m.run.cycle}}
	m.account, m.permissions.added = account{}, nil
	if len(d.Config) > 0 || len(d.Results) > 0 {
		// What was reported of another prompt bounds nothing.
		m.messages.size = size{fixed: m.messages.fixedSize(&m.run.cfg)}
		m.compaction.begin()
	}
	m.model.attempt = attempt{number: 1, target: target}
	m.run.Parked, m.run.Cancel, m.run.pause, m.calls.stopBudget = nil, nil, false, ""
	return nil
}
