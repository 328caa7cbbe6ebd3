package agent

import (
	"slices"
	"strconv"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/stop"
)

func (h *Hook) about(tool string) bool {
	return len(h.Tools) == 0 || slices.ContainsFunc(h.Tools, func(pattern string) bool { return policy.MatchTool(pattern, tool) })
}

// HooksBefore returns the hooks that would run before a call of a tool.
func (c *Config) HooksBefore(tool string) []Hook {
	var hooks []Hook
	for h := c.hookAfter(nil, event.HookBeforeTool, tool); h != nil; h = c.hookAfter(h, event.HookBeforeTool, tool) {
		hooks = append(hooks, *h)
	}
	return hooks
}

// hookAfter returns the next hook of a stage after last, or the first if last is nil;
// nil if there is none.
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

// hooks is the progress of the hooks of a run, or of a compaction: the next to run, nil
// for none, and the one that refused.
type hooks struct {
	due     *Hook
	refusal *event.HookResult
}

// runHooks are the hooks about the run as a whole.
type runHooks struct{ before, after hooks }

// answered folds the result of the hook that is due, and reports whether it may have
// consequences: an observer's has none, and the result of another hook is late or
// repeated.
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

// runHook requests a hook. change fills in its subject.
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

// hookTurns returns how many more hooks may run beside those that are due, negative for
// no limit.
func (r *run) hookTurns(due actions) int {
	if r.cfg.Limits.MaxParallelTools <= 0 {
		return -1
	}
	return max(r.cfg.Limits.MaxParallelTools-due.hooks(), 0)
}

// kindHook is the prefix of the kind of an end that a hook caused; its name follows.
const kindHook = "hook:"

// nextBefore requests the next hook before the run begins.
func (h *runHooks) nextBefore(r *run) machine.Action {
	if h.before.due == nil {
		return nil
	}
	return r.runHook(h.before.due, func(*machine.RunHook) {})
}

// nextAfter returns the next hook that receives the run's outcome.
func (h *runHooks) nextAfter(r *run, end *event.Outcome) machine.Action {
	if h.after.due == nil {
		return nil
	}
	return r.runHook(h.after.due, func(a *machine.RunHook) { a.Outcome = end })
}

// refused ends a run that a hook did not allow to begin.
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

// hookSays describes what a hook did, and why.
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

// skipped is the record of a hook that does not run because the run was cancelled, or
// ended. As a gate it is closed.
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

// callHooks is the progress of the hooks about a call.
type callHooks struct {
	before, after hooks
	// asked is the first hook that wants a person to decide.
	asked *event.HookResult
	// rewritten reports whether the arguments are a hook's, after a person's.
	rewritten bool
}

// again makes the hooks run again after a person changed the arguments: a gate applies
// to these as well.
func (h *callHooks) again(c *Config, tool string) {
	*h = callHooks{before: hooks{due: c.hookAfter(nil, event.HookBeforeTool, tool)}}
}

// added reports whether the hooks did more with a person's arguments than repeat their
// question, so that their author has not approved what will run.
func (h *callHooks) added(asked *event.HookResult) bool {
	return h.rewritten || h.asked != nil && (asked == nil || asked.Hook != h.asked.Hook)
}

// compactionHooks is the progress of the hooks about a compaction.
type compactionHooks struct {
	before, after hooks
	// begun reports whether the hooks before the compaction were requested.
	begun bool
	// done is the compaction that the later hooks receive.
	done *event.HistoryCompressed
}

// vetoed reports whether a hook forbids a compaction here. It is asked again after the
// next cycle.
func (h *compactionHooks) vetoed() bool { return h.before.refusal != nil }

// nextBefore requests the next hook before a compaction.
func (h *compactionHooks) nextBefore(r *run, in *compact.Situation, used int) machine.Action {
	due := h.before.due
	if !h.begun {
		due = r.cfg.hookAfter(nil, event.HookBeforeCompaction, "")
	}
	if due == nil {
		return nil
	}
	return r.runHook(due, func(a *machine.RunHook) {
		a.Compaction = &event.HistoryCompressed{
			Strategy: string(r.cfg.Compact.Strategy), Trigger: in.Trigger,
			Kept: len(in.Messages), TokensBefore: int64(used),
		}
	})
}

// nextAfter requests the next hook after a compaction. The run continues when all have
// run.
func (h *compactionHooks) nextAfter(r *run) machine.Action {
	switch due := h.after.due; {
	case due == nil || r.phase >= phaseEnding:
		return nil
	case r.Cancel != nil:
		return record(r.skipped(due, ""))
	default:
		return r.runHook(due, func(a *machine.RunHook) { a.Compaction = h.done })
	}
}

func (h *compactionHooks) answered(c *Config, d *event.HookResult) {
	if d.Stage == event.HookAfterCompaction {
		h.after.answered(c, d, "")
		return
	}
	if !h.begun {
		h.begun, h.before.due = true, c.hookAfter(nil, event.HookBeforeCompaction, "")
	}
	h.before.answered(c, d, "")
}

// compacted begins the hooks after a compaction.
func (h *compactionHooks) compacted(c *Config, d *event.HistoryCompressed) {
	*h = compactionHooks{}
	if h.after.due = c.hookAfter(nil, event.HookAfterCompaction, ""); h.after.due != nil {
		h.done = d
	}
}

// problem returns why the call cannot run, and the author of its arguments.
func (c *call) problem() string {
	if c.resolved.EditedBy == "" {
		return c.resolved.Problem.Message
	}
	return c.resolved.EditedBy + " gave this call other arguments, so it was not run: " + c.resolved.Problem.Message
}

// judge returns policy's verdict on a call, or a hook's question if policy would allow
// it: a hook never softens a verdict.
func (p *permissions) judge(r *run, c *call) policy.Verdict {
	v := p.rules(r).Decide(c.resolved)
	if d := c.hooks.asked; d != nil && v.Decision != event.DecisionAsk && permits(v.Decision) {
		v = policy.Verdict{Decision: event.DecisionAsk, Rule: "hooks.before_tool: " + d.Hook, Reason: d.Reason, Sandbox: v.Sandbox}
	}
	return v
}

// hooksAfter requests the hooks about the calls that have their results. Anything that
// depends on a call waits for them: they may change its result. No more hooks run at
// once than calls may run at once: an answer with a hundred calls must not start a
// hundred programs.
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

// applyAfterTool folds a hook's change of a result: the model sees the changed result,
// the call's settlement stays as it is.
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
