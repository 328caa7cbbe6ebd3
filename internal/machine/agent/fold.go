package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/llm"
)

func (m *Machine) applyStarted(e *event.Event, d event.RunStarted) error {
	if d.Vocabulary > event.Version || d.Machine != Version || d.Projection != history.Version {
		return fmt.Errorf("%w: run %s was written by machine %s, projection %s, vocabulary %d",
			ErrUnsupported, e.Run, d.Machine, d.Projection, d.Vocabulary)
	}
	if err := json.Unmarshal(d.Config, &m.run.cfg); err != nil {
		return fmt.Errorf("agent: decode config of run %s: %w", e.Run, err)
	}
	if len(m.run.cfg.Targets) == 0 {
		return fmt.Errorf("agent: run %s names no model", e.Run)
	}
	m.messages.workload = e.Run
	if d.From != nil {
		m.messages.workload = cmp.Or(d.From.Root, d.From.Run)
		if err := history.Lint(d.From.History); err != nil {
			return fmt.Errorf("agent: history of run %s, which run %s continues: %w", d.From.Run, e.Run, err)
		}
		m.messages.history.Append(d.From.History...)
		m.run.Taint = d.From.Taint
	}
	if d.Input != nil && spoken(d.Input.Parts) {
		m.messages.history.Append(d.Input)
	}
	if d.Fence != nil {
		m.messages.fence = fence.New(d.Fence.Nonce)
	}
	m.messages.system = prompt(m.run.cfg.System, m.messages.fence.Active())
	m.messages.size.fixed = m.messages.fixedSize(&m.run.cfg)
	m.run.phase, m.permissions.policy = phaseReady, d.Policy
	m.hooks.before.due = m.run.cfg.hookAfter(nil, event.HookBeforeRun, "")
	return nil
}

func (m *Machine) applyCycleStart(d event.CycleStart) error {
	if m.run.phase != phaseReady && m.run.phase != phaseSettled || d.Cycle != m.run.cycle+1 {
		return fmt.Errorf("%w: cycle %d starts during cycle %d", ErrMisfit, d.Cycle, m.run.cycle)
	}
	m.run.cycle, m.run.Spent.Cycles, m.run.phase = d.Cycle, d.Cycle, phaseModel
	m.model.response, m.progress.stuck, m.turn.checked = nil, nil, nil
	m.calls.begin()
	m.compaction.summary.forget()
	m.compaction.hooks = compactionHooks{}
	m.model.begin()
	m.hooks.before = hooks{} // forks of older versions did not run them all
	m.messages.read(false)
	return nil
}

func (m *Machine) applyToolCall(d *event.ToolCall) error {
	c := m.calls.touch(d.CallID)
	if m.run.phase == phaseTools && c != nil && c.approved() {
		c.changed(d)
		return nil
	}
	if m.run.phase != phaseTools || c == nil || c.resolved != nil {
		return fmt.Errorf("%w: tool_call %s is not due in cycle %d", ErrMisfit, d.CallID, m.run.cycle)
	}
	c.resolved = d
	if c.ref.Name != d.Tool {
		c.said, c.ref.Name = c.ref.Name, d.Tool
	}
	if c.given != nil {
		return nil // the conversation keeps the model's arguments
	}
	c.repeats.own = d.Digest
	c.hooks.before.due = m.run.cfg.hookAfter(nil, event.HookBeforeTool, c.ref.Name)
	return m.messages.history.Call(c.index, *d)
}

func (m *Machine) settle(c *call, d *event.ToolResult) {
	c.result = d
	c.stop()
	c.pending.Void()
	c.news = m.progress.note(&m.run, d.Tool, d.Output)
	m.run.tainted(d)
	if c.attempt > 0 {
		c.hooks.after.due = m.run.cfg.hookAfter(nil, event.HookAfterTool, c.ref.Name)
	}
	if d.Limit != "" {
		m.calls.stopBudget = d.Limit
	}
}

func (m *Machine) applyResults() error {
	truncated := false
	for _, c := range m.calls.list {
		if m.run.phase != phaseTools || !c.done() {
			return fmt.Errorf("%w: tool.results of cycle %d while %s is open", ErrMisfit, m.run.cycle, c.ref.CallID)
		}
		truncated = truncated || c.result.ErrorType == event.ErrorTruncated
	}
	m.run.phase = phaseSettled
	m.progress.observe(m.calls.list)
	m.turn.settled(m.model.response, len(m.calls.list), truncated)
	m.progress.failureCounts.settled(m.calls.list)
	return m.messages.history.Results(m.messages.modelResults(m.calls.list))
}

func (m *Machine) applyNudge(d event.Nudge) error {
	if m.run.phase != phaseSettled {
		return fmt.Errorf("%w: a nudge within cycle %d", ErrMisfit, m.run.cycle)
	}
	if d.Kind == event.NudgeWithheld {
		m.messages.history.BreakOff()
		m.compaction.meter.Reset()
	}
	m.messages.history.Loop(d.Text)
	switch d.Kind {
	case event.NudgeNoToolCall:
		m.turn.nudges++
	case event.NudgeResult:
		m.turn.resultAsked = true
	}
	m.run.phase = phaseReady
	return nil
}

// applyResumed makes everything in flight an orphan: its outcome is unknown, and Next
// decides by effect class.
func (m *Machine) applyResumed(d event.RunResumed) {
	m.run.pause = false
	m.permissions.judgeBy(d.Policy, m.calls.list)
	m.model.resume()
	m.account.refused = nil
	m.compaction.summary.call.resume()
	for _, c := range m.calls.list {
		c.resume(d)
	}
}

func (m *Machine) applyTerminatedBy() error {
	if m.run.phase == phaseTools {
		if err := m.calls.cutShort(&m.run, &m.messages); err != nil {
			return err
		}
	}
	m.run.phase = phaseEnding
	m.hooks.after.due = m.run.cfg.hookAfter(nil, event.HookAfterRun, "")
	return nil
}

// applyCompleted ends the run. Unread messages stay in the history, for a run
// that continues this one.
func (m *Machine) applyCompleted() error {
	if m.run.phase != phaseEnding {
		return fmt.Errorf("%w: run.completed without run.terminated_by", ErrMisfit)
	}
	m.messages.read(true)
	m.run.phase = phaseEnded
	return nil
}

// measure measures the new messages, so that the size of the next request is known.
// While calls are open there is no next request.
func (m *Machine) measure() {
	switch m.run.phase {
	case phaseReady, phaseModel, phaseSettled:
		m.messages.measure(m.run.cfg.Tools)
		m.compaction.measure(&m.run.cfg, &m.messages)
	}
}

// applyBudget folds an event about the budget into the run's ledger, from which its
// children draw too, and into the account of its own calls.
func (m *Machine) applyBudget(data event.Data) error {
	switch d := data.(type) {
	case event.BudgetRefused:
		return m.account.applyRefused(&m.run, d)
	case event.BudgetReserved:
		if err := m.run.Reserve(d); err != nil || d.Run != "" {
			return err
		}
		m.account.reserved(d, m.run.capsOutput(m.target(), d.Output))
	case event.BudgetCommitted:
		exceeded, err := m.run.Commit(d, m.run.cfg.Limits)
		m.account.committed(d, exceeded)
		return err
	case event.BudgetWarning:
		m.account.warned = m.account.warned.Warned(d.Setting, d.Percent)
	case event.BudgetOverrun:
		m.run.Overrun = d.Setting
	case event.BudgetRaised:
		m.applyRaised(d)
	}
	return nil
}

// applyRaised changes a limit. An unknown setting or an invalid value changes
// nothing: its sender gets an error, and a running run does not fail.
func (m *Machine) applyRaised(d event.BudgetRaised) {
	if err := m.run.cfg.SetLimit(d.Setting, d.Value); err != nil {
		return
	}
	if d.Setting == m.calls.stopBudget {
		m.calls.stopBudget = ""
	}
	m.account.warned = m.run.cfg.Limits.Raised(m.run.Spent, m.account.warned)
	m.run.Overrun = "" // recorded again if it still holds, or another does
	m.account.outdated = m.account.id != "" && !m.account.settled && !m.model.inFlight && !m.compaction.summary.call.inFlight
}

// applyApproval folds a decision. One that does not count changes nothing.
func (m *Machine) applyApproval(d event.Resolution) {
	c := m.calls.touch(d.ID)
	switch {
	case c == nil || c.result != nil:
		return
	case c.form.Take(d):
		c.input = &event.FormAnswer{Kind: d.Kind, Input: d.Args, Reason: d.Reason, State: c.form.Asking.(event.ToolInputRequired).Form.State}
		return
	case !c.pending.Take(d):
		return
	}
	m.decided(c, "was "+string(d.Kind)+" by "+d.Approver, d.Reason)
	if f := c.resolved.Facts; d.Kind == event.ApprovalApproved && f != nil && f.Redefined != nil {
		m.permissions.redefined = append(m.permissions.redefined, f.Redefined.Digest)
	}
	if d.Kind != event.ApprovalEdited {
		return
	}
	c.edit = &edit{Resolution: &d, before: c.resolved, asked: c.hooks.asked}
	c.given = &given{args: d.Args, by: d.Approver, reason: d.Reason}
	c.resolved = nil
	c.judged(nil)
	c.hooks.again(&m.run.cfg, c.ref.Name)
}

// applyHook folds a hook's result. A late or repeated result changes nothing.
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

// applyBeforeTool folds the result of a hook before a call. Arguments that it rewrote
// are resolved and judged like the model's own.
func (m *Machine) applyBeforeTool(c *call, d *event.HookResult) {
	if c == nil || c.result != nil || c.resolved == nil || !c.hooks.before.answered(&m.run.cfg, d, c.ref.Name) {
		return
	}
	switch d.Decision {
	case event.HookBlock:
		m.decided(c, "was blocked by the hook "+d.Hook, d.Reason)
	case event.HookAsk:
		if c.hooks.asked == nil {
			c.hooks.asked = d
		}
	case event.HookRewrite:
		c.given, c.hooks.rewritten = &given{args: d.Args, by: "the hook " + d.Hook, reason: d.Reason}, true
		c.resolved = nil
	}
}

// counts are the numbers of calls of a cycle in each state. They are updated from the
// calls that an event changes, because looking at all of them after each event would
// cost the square of their number.
type counts struct {
	open, unresolved, granted, running, busy, waiting, children, asked, hooks, undecided, behind int
}

func (t *counts) add(o counts, times int) {
	t.open += times * o.open
	t.unresolved += times * o.unresolved
	t.granted += times * o.granted
	t.running += times * o.running
	t.busy += times * o.busy
	t.waiting += times * o.waiting
	t.children += times * o.children
	t.asked += times * o.asked
	t.hooks += times * o.hooks
	t.undecided += times * o.undecided
	t.behind += times * o.behind
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// ErrInput is returned for a task that is not a valid user message.
var ErrInput = errors.New("agent: not a user's message")

// userMessage validates a message of a user: texts and files only. A client cannot supply the
// owner's, the model's, a tool's or the loop's messages: no system text, no approval
// and no compaction boundary.
func userMessage(m *llm.Message) (*llm.Message, error) {
	if m == nil {
		return nil, nil
	}
	if m.Role != llm.RoleUser {
		return nil, fmt.Errorf("%w: its role is %q", ErrInput, m.Role)
	}
	for _, p := range m.Parts {
		switch p.(type) {
		case llm.Text, llm.Media:
		default:
			return nil, fmt.Errorf("%w: it holds a %T", ErrInput, p)
		}
	}
	if m.Origin == "" {
		return m, nil
	}
	own := *m
	own.Origin = ""
	return &own, nil
}

// outOfTime returns the limit on time that is used up, or "".
func (r *run) outOfTime() string { return r.cfg.Limits.OutOfTime(r.Spent) }

// tooLateToWait refuses a wait for which a limit on time has no room.
func tooLateToWait(setting string, wait time.Duration) budget.Refusal {
	return budget.Refusal{
		Setting: setting, After: wait, Because: "the wait before the next attempt is longer than the remaining time",
	}
}

// outlasts returns the limit on time that is reached before a wait ends, for
// example because it was lowered meanwhile, or "".
func (r *run) outlasts(wait time.Time) (setting string) {
	if end := r.deadline(); end.Setting != "" && !wait.IsZero() && !wait.Before(end.At) {
		return end.Setting
	}
	return ""
}

// noTimeFor names the limit on time that has no room for a delay, or "".
func (r *run) noTimeFor(delay time.Duration) (setting string) {
	if left, setting := r.cfg.Limits.Remaining(r.Spent); setting != "" && delay >= left {
		return setting
	}
	return ""
}

// deadline is as in [tree.Base.Deadline].
func (r *run) deadline() machine.Deadline {
	d := r.Deadline(r.cfg.Limits)
	d.Asks = d.Setting != "" && r.cfg.asksAt(d.Setting)
	return d
}
