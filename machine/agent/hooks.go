package agent

import (
	"slices"
	"strconv"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/policy"
)

// Hook is one of the owner's hooks as the machine knows it: when it runs,
// and of which tools. Who performs the machine's actions knows what it does.
//
// Hooks of a stage run one after the other, in declared order, and each
// is shown what those before it made of the call. What they say only ever
// makes a call's way narrower: policy judges what they leave, and their
// question never softens a denial.
type Hook struct {
	Stage event.HookStage `json:"stage"`
	// Name is unique within its stage.
	Name string `json:"name"`
	// Observer says that nothing follows from the hook but its record. Any
	// other hook is a gate, and one that fails blocks.
	Observer bool `json:"observer,omitempty"`
	// Tools are patterns for the tools whose calls the hook is about, in which a
	// star stands for any characters; none means every tool.
	Tools []string `json:"tools,omitempty"`
}

func (h *Hook) about(tool string) bool {
	return len(h.Tools) == 0 || slices.ContainsFunc(h.Tools, func(pattern string) bool { return policy.MatchTool(pattern, tool) })
}

// HooksBefore are the hooks that would run before a call of a tool.
func (c *Config) HooksBefore(tool string) []Hook {
	var hooks []Hook
	for h := c.hookAfter(nil, event.HookBeforeTool, tool); h != nil; h = c.hookAfter(h, event.HookBeforeTool, tool) {
		hooks = append(hooks, *h)
	}
	return hooks
}

// hookAfter is the next hook of a stage behind last, or the first where last is
// nil; nil when there is none.
func (c *Config) hookAfter(last *Hook, stage event.HookStage, tool string) *Hook {
	passed := last == nil
	for i := range c.Hooks {
		h := &c.Hooks[i]
		if passed && h.Stage == stage && h.about(tool) {
			return h
		}
		passed = passed || h == last
	}
	return nil
}

// hooks is how far the hooks of a run, or of a compaction, have come: the next
// to run, nil for none, and the one that refused.
type hooks struct {
	due     *Hook
	refusal *event.HookResult
}

// runHooks are the hooks about the run as a whole.
type runHooks struct{ before, after hooks }

// answered folds the result of the hook that is due, and says whether anything may
// follow from it: of an observer nothing does, and the result of another hook
// comes too late, or a second time.
func (h *hooks) answered(c *Config, d *event.HookResult, tool string) bool {
	if h.due == nil || h.due.Name != d.Hook {
		return false
	}
	observer := h.due.Observer
	h.due = c.hookAfter(h.due, d.Stage, tool)
	if observer {
		return false
	}
	if d.Decision == event.HookBlock {
		h.due, h.refusal = nil, d
	}
	return true
}

// runHook asks for a hook to run. What it is about is filled by change.
func (r *run) runHook(h *Hook, change func(*machine.RunHook)) machine.Action {
	a := machine.RunHook{
		ID: string(h.Stage) + "/" + h.Name, Stage: h.Stage, Hook: h.Name, Observer: h.Observer,
		Cycle: r.cycle, MaxResultChars: r.cfg.Limits.MaxResultChars,
	}
	change(&a)
	if a.CallID == "" {
		a.ID += "/" + strconv.Itoa(r.cycle)
	} else {
		a.ID += "/" + a.CallID
	}
	return a
}

// hookTurns is how many more hooks may run beside those that are due, negative where
// nothing bounds them.
func (r *run) hookTurns(due actions) int {
	if r.cfg.Limits.MaxParallelTools <= 0 {
		return -1
	}
	return max(r.cfg.Limits.MaxParallelTools-due.hooks(), 0)
}

// applyHook folds what followed from a hook. What comes too late, or a second
// time, changes nothing.
func (m *Machine) applyHook(e *event.Event, d *event.HookResult) {
	c, cfg := m.calls.touch(d.CallID), &m.run.cfg
	if c != nil {
		c.since = e.Time
	}
	switch d.Stage {
	case event.HookBeforeTool:
		m.applyBeforeTool(c, d)
	case event.HookAfterTool:
		if c != nil {
			c.applyAfterTool(cfg, d)
		}
	case event.HookBeforeCompaction, event.HookAfterCompaction:
		m.compaction.hooks.answered(cfg, d)
	case event.HookBeforeRun:
		m.hooks.before.answered(cfg, d, "")
	case event.HookAfterRun:
		m.hooks.after.answered(cfg, d, "")
	}
}

// kindHook begins the kind of an end that a hook brought about; its name follows.
const kindHook = "hook:"

// nextBefore asks for the next hook before the run begins.
func (h *runHooks) nextBefore(r *run) machine.Action {
	if h.before.due == nil {
		return nil
	}
	return r.runHook(h.before.due, func(*machine.RunHook) {})
}

// nextAfter asks for the next hook that is told how the run will end.
func (h *runHooks) nextAfter(r *run, end func() event.Outcome) machine.Action {
	if h.after.due == nil {
		return nil
	}
	outcome := end()
	return r.runHook(h.after.due, func(a *machine.RunHook) { a.Outcome = &outcome })
}

// refused ends a run that a hook would not let begin.
func (h *runHooks) refused() machine.Action {
	d := h.before.refusal
	if d == nil {
		return nil
	}
	return record(event.RunTerminatedBy{
		Reason: event.ReasonPolicyDenied, Kind: kindHook + d.Hook, Detail: d.Reason,
		Error: &event.Failure{Class: string(refusalType(d)), Message: hookSays(d, "did not let the run begin")},
	})
}

// hookSays tells what a hook did, and why.
func hookSays(d *event.HookResult, did string) string {
	if d.Failed {
		did += ", because it failed and a gate that fails is closed"
	}
	return sentence("the hook "+d.Hook+" "+did, d.Reason)
}

func refusalType(d *event.HookResult) event.ErrorType {
	if d.Failed {
		return event.ErrorHookFailed
	}
	return event.ErrorHookBlocked
}

// skipped is the record of a hook that is not run any more, because the run
// was cancelled, or ended. As a gate it is closed.
func (r *run) skipped(h *Hook, callID string) event.HookResult {
	happened := "ended"
	if r.Cancel != nil {
		happened = "was cancelled"
	}
	d := event.HookResult{
		CallID: callID, Hook: h.Name, Stage: h.Stage, Decision: event.HookBlock, Failed: true, Observer: h.Observer,
		Reason: "the run " + happened + " before this hook was heard",
	}
	if h.Observer {
		d.Decision = event.HookContinue
	}
	return d
}
