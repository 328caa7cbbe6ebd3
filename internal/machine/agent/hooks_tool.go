package agent

import (
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/stop"
)

// problem says why the call cannot run, and whose arguments it has.
func (c *call) problem() string {
	if c.resolved.EditedBy == "" {
		return c.resolved.Problem.Message
	}
	return c.resolved.EditedBy + " gave this call other arguments, so it was not run: " + c.resolved.Problem.Message
}

// judge is what policy says of a call, and a hook's question where policy would
// have let it run: a hook never softens a verdict.
func (p *permissions) judge(r *run, c *call) policy.Verdict {
	v := p.rules(r).Decide(c.resolved)
	if d := c.hooks.asked; d != nil && v.Decision != event.DecisionAsk && permits(v.Decision) {
		v = policy.Verdict{Decision: event.DecisionAsk, Rule: "hooks.before_tool: " + d.Hook, Reason: d.Reason, Sandbox: v.Sandbox}
	}
	return v
}

// hooksAfter asks for the hooks about the calls that have their results. What
// depends on a call waits for them: they may change what it left behind. No more
// hooks run at once than calls may run at once: an answer of a hundred calls must
// not start a hundred programs.
func (s *calls) hooksAfter(r *run, due *actions) {
	if s.total.hooks == 0 {
		return
	}
	turns := r.hookTurns(*due)
	for _, c := range s.unsettled() {
		h := c.hooks.after.due
		switch {
		case h == nil:
		case r.Cancel != nil:
			due.add(record(r.skipped(h, c.ref.CallID)))
		case turns != 0:
			turns--
			due.add(r.runHook(h, func(a *machine.RunHook) {
				a.CallID, a.Tool, a.Args, a.Result = c.ref.CallID, c.ref.Name, c.resolved.Args, c.result
				a.Sought = stop.Sought(r.cfg.Conditions, c.ref.Name)
			}))
		}
	}
}

// applyAfterTool folds what a hook says of a result: the model sees what the hook
// leaves of it, the call's settlement stays as it is.
func (c *call) applyAfterTool(cfg *Config, d *event.HookResult) {
	if !c.hooks.after.answered(cfg, d, c.ref.Name) {
		return
	}
	seen := *c.result
	switch d.Decision {
	case event.HookRewrite:
		seen.Output, seen.Blob, seen.Contains, seen.Media = d.Output, "", d.Contains, nil
	case event.HookBlock:
		seen = c.failed(refusalType(d), hookSays(d, "withheld what this call gave; the call itself has run"))
		seen.Untrusted = c.result.Untrusted // why may quote it
	default:
		return
	}
	c.result = &seen
}
