package launch

import (
	"cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
)

// approvals is what the file says of gated calls. A flag that says who answers
// them holds in its place.
func approvals(s *spec.ApprovalSettings, cfg *agent.Config) {
	if s == nil {
		return
	}
	cfg.Approve = cmp.Or(cfg.Approve, agent.ApproveMode(s.Mode))
	cfg.Approvals = agent.Approvals{Seconds: float64(value(s.Timeout)), OnTimeout: agent.OnTimeout(s.OnTimeout)}
}

// CheckCall says what stands against a call of a run's tool before policy would
// judge it: no such tool, or arguments that do not fit its schema. It runs
// nothing.
func CheckCall(started event.RunStarted, c llm.ToolCall) (*event.Problem, error) {
	a, err := restore(started)
	if err != nil {
		return nil, err
	}
	o := Options{Flags: Flags{Workspace: started.Workspace}}
	env, err := o.environment(a, o.resolver(a.Dir))
	if err != nil {
		return nil, err
	}
	return env.Tools.Resolve(c.CallID, c).Problem, assembly.Closing(env, nil)
}
