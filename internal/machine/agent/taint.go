package agent

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
)

// tainted notes what a result brought in.
func (r *run) tainted(d *event.ToolResult) {
	source := event.TaintSource{Run: r.ID, Cycle: r.cycle, CallID: d.CallID, Tool: d.Tool}
	r.Taint = r.Taint.With(source.Brings(d.Untrusted, d.Private))
}

// tookIn notes that the provider ran a tool of its own within an answer: what
// it found there is nobody's that the owner knows.
func (r *run) tookIn(parts llm.Parts) {
	if len(r.cfg.ProviderTools) == 0 || r.Taint.Untrusted != nil {
		return
	}
	for _, p := range parts {
		if item, ok := p.(llm.Item); ok {
			r.Taint.Untrusted = &event.TaintSource{Run: r.ID, Cycle: r.cycle, Tool: item.Type}
			return
		}
	}
}

// permissions are the rules that calls are judged by, beside those of the
// configuration.
type permissions struct {
	// policy is the version of the policy that judges.
	policy string
	// added are what people allowed for the rest of the run.
	added []event.PermissionAdded
}

// rules are the owner's with what people allowed since, for what the run has taken in.
func (p *permissions) rules(r *run) policy.Rules {
	rules := r.cfg.Policy
	rules.Taint = r.Taint
	rules.Permissions = slices.Clip(rules.Permissions) // others have them, too
	for _, more := range p.added {
		rules.Permissions = append(rules.Permissions, more.Permission)
	}
	return rules
}

// providerTools are the tools of the provider's own that the next request
// names, and those that are withheld from it: what the run has taken in so far
// decides, the same after a resume.
func (p *permissions) providerTools(r *run) (offered []string, withheld *event.Withheld) {
	return p.rules(r).Offered(r.cfg.ProviderTools)
}

// brokenOff says that the provider would go on with tools of its own, because it
// paused its turn or waits for the results of our calls beside them, and may not
// use one any more that it was offered for this turn. It refuses to go on without
// the tools that its half-done calls are of, so the turn goes on without those
// calls.
func (a *modelCall) brokenOff(r *run, p *permissions, calls int) *event.Withheld {
	switch paused := a.response.FinishReason == llm.FinishPause; {
	case len(r.cfg.ProviderTools) == 0, calls == 0 && !paused:
		return nil
	case calls > 0 && len(history.HalfDone(llm.Parts(a.response.Parts))) == 0:
		return nil
	}
	_, withheld := p.providerTools(r)
	if withheld == nil {
		return nil
	}
	for _, name := range withheld.Tools {
		if a.withheld == nil || !slices.Contains(a.withheld.Tools, name) {
			return withheld
		}
	}
	return nil
}

// withheldNudge tells the model what it has to go on without.
func withheldNudge(w *event.Withheld) string {
	return "You can use " + strings.Join(w.Tools, ", ") + " no more, because " + w.Reason + ". Go on without."
}
