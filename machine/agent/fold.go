package agent

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/fence"
	"github.com/pawlrun/pawl/history"
	"github.com/pawlrun/pawl/llm"
)

func (m *Machine) applyStarted(e *event.Event, d event.RunStarted) error {
	if d.Vocabulary > event.Version || d.Machine != Version || d.Projection != history.Version {
		return fmt.Errorf("%w: run %s was written by machine %s, projection %s, vocabulary %d",
			ErrUnsupported, e.Run, d.Machine, d.Projection, d.Vocabulary)
	}
	if err := json.Unmarshal(d.Config, &m.cfg); err != nil {
		return fmt.Errorf("agent: decode config of run %s: %w", e.Run, err)
	}
	if len(m.cfg.Targets) == 0 {
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
	m.messages.system = prompt(m.cfg.System, m.messages.fence.Active())
	m.messages.size.fixed = m.fixedSize()
	m.phase, m.permissions.policy = phaseReady, d.Policy
	m.hooks.before.due = m.cfg.hookAfter(nil, event.HookBeforeRun, "")
	return nil
}

func (m *Machine) applyCycleStart(d event.CycleStart) error {
	if m.phase != phaseReady && m.phase != phaseSettled || d.Cycle != m.cycle+1 {
		return fmt.Errorf("%w: cycle %d starts during cycle %d", ErrMisfit, d.Cycle, m.cycle)
	}
	m.cycle, m.run.Spent.Cycles, m.phase = d.Cycle, d.Cycle, phaseModel
	m.model.response, m.progress.stuck, m.turn.checked = nil, nil, nil
	m.calls.begin()
	m.forgetSummary()
	m.compaction.hooks = compactionHooks{}
	m.model.begin()
	m.hooks.before = hooks{} // forks of older versions did not run them all
	m.messages.read()
	return nil
}

func (m *Machine) applyRequested(d event.ModelRequested) error {
	if d.Purpose == event.PurposeSummary {
		return m.applySummaryRequested(d)
	}
	if m.phase != phaseModel || m.model.inFlight || m.model.failure != nil {
		return fmt.Errorf("%w: attempt %d at a model call, which is not due", ErrMisfit, d.Attempt)
	}
	m.model.requested(d)
	m.run.Spent.ModelCalls++
	m.gotOn()
	return nil
}

func (m *Machine) applyAttemptFailed(d *event.ModelAttemptFailed) error {
	if d.Purpose == event.PurposeSummary {
		return m.applySummaryFailed(d)
	}
	if !m.model.inFlight {
		return fmt.Errorf("%w: attempt %d failed without being in flight", ErrMisfit, d.Attempt)
	}
	m.spend(d.Usage, d.Cost)
	if d.Class != llm.ClassInterrupted {
		m.model.answered++
	}
	m.model.failed(d)
	if d.Class == llm.ClassContextOverflow {
		m.tooLong()
	}
	return nil
}

func (m *Machine) applyRetrying(e *event.Event, d event.ModelRetrying) error {
	if d.Purpose == event.PurposeSummary {
		return m.applySummaryRetrying(e, d)
	}
	if m.model.failure == nil {
		return fmt.Errorf("%w: attempt %d follows no failure", ErrMisfit, d.Attempt)
	}
	m.model.retrying(d, e.Time, m.cfg.Targets)
	m.compaction.overflow = reliefNone
	return nil
}

func (m *Machine) applyResponse(d *event.ModelResponse) error {
	if d.Purpose == event.PurposeSummary {
		return m.applySummary(d)
	}
	if !m.model.inFlight {
		return fmt.Errorf("%w: an answer in cycle %d to no call", ErrMisfit, m.cycle)
	}
	parts := llm.Parts(d.Parts)
	refs := parts.ToolCalls()
	if len(refs) != len(d.ToolCalls) {
		return fmt.Errorf("%w: response of cycle %d names %d calls and holds %d", ErrMisfit, d.Cycle, len(d.ToolCalls), len(refs))
	}
	m.spend(d.Usage, d.Cost)
	m.model.answered++
	m.run.Spent.Turns++
	m.model.inFlight, m.model.orphan = false, false
	m.model.response = d
	if d.FinishReason == llm.FinishContext {
		m.tooLong()
	} else {
		m.fitted(d.Usage)
	}
	m.messages.history.Assistant(parts, d.Model)
	m.messages.size.answered(d, m.messages.history.Len())
	m.noteText(d)
	m.turn.answered(d, len(refs), len(m.cfg.Schema) > 0, m.cfg.AllText)
	m.showAnswer(parts, len(refs))
	m.tookIn(parts)
	if len(refs) == 0 {
		m.phase = phaseSettled
		m.turn.settled(d, 0, d.FinishReason == llm.FinishLength)
		return nil
	}
	m.phase = phaseTools
	m.calls.asked(refs)
	return nil
}

// onOpenCall changes a call that has no result yet: a second result, and
// anything after the first, has no place.
func (m *Machine) onOpenCall(e *event.Event, id string, change func(*call)) error {
	c := m.calls.touch(id)
	switch {
	case m.phase != phaseTools || c == nil:
		return fmt.Errorf("%w: %s of %s, which is no call of cycle %d", ErrMisfit, e.Type(), id, m.cycle)
	case c.result != nil:
		return fmt.Errorf("%w: %s of %s, which is settled", ErrMisfit, e.Type(), id)
	}
	c.since = e.Time
	change(c)
	return nil
}

func (m *Machine) applyToolCall(d *event.ToolCall) error {
	c := m.calls.touch(d.CallID)
	if m.phase != phaseTools || c == nil || c.resolved != nil {
		return fmt.Errorf("%w: tool_call %s is not due in cycle %d", ErrMisfit, d.CallID, m.cycle)
	}
	c.resolved, m.calls.shown = d, m.calls.shown[:0]
	if c.given != nil {
		return nil // the conversation keeps what the model said
	}
	c.repeats.own = d.Digest
	c.hooks.before.due = m.cfg.hookAfter(nil, event.HookBeforeTool, c.ref.Name)
	return m.messages.history.Call(c.index, *d)
}

func (m *Machine) applyToolStarted(e *event.Event, d event.ToolStarted) error {
	return m.onOpenCall(e, d.CallID, func(c *call) {
		if c.attempt == 0 {
			m.run.Spent.ToolCalls++
		}
		c.start(d.Attempt)
	})
}

func (m *Machine) settle(c *call, d *event.ToolResult) {
	c.result = d
	c.stop()
	c.pending.Void()
	c.news = m.noteResult(d)
	m.tainted(d)
	if c.attempt > 0 {
		c.hooks.after.due = m.cfg.hookAfter(nil, event.HookAfterTool, c.ref.Name)
	}
	if d.Limit != "" {
		m.calls.stopBudget = d.Limit
	}
}

func (m *Machine) applyResults() error {
	truncated := false
	for _, c := range m.calls.list {
		if m.phase != phaseTools || !c.done() {
			return fmt.Errorf("%w: tool.results of cycle %d while %s is open", ErrMisfit, m.cycle, c.ref.CallID)
		}
		truncated = truncated || c.result.ErrorType == event.ErrorTruncated
	}
	m.phase = phaseSettled
	m.observe()
	m.turn.settled(m.model.response, len(m.calls.list), truncated)
	m.progress.failureCounts.settled(m.calls.list)
	return m.messages.history.Results(m.messages.toldResults(m.calls.list))
}

func (m *Machine) applyNudge(d event.Nudge) error {
	if m.phase != phaseSettled {
		return fmt.Errorf("%w: a nudge within cycle %d", ErrMisfit, m.cycle)
	}
	if d.Kind == event.NudgeWithheld {
		m.messages.history.BreakOff()
	}
	m.messages.history.Loop(d.Text)
	switch d.Kind {
	case event.NudgeNoToolCall:
		m.turn.nudges++
	case event.NudgeResult:
		m.turn.resultAsked = true
	}
	m.phase = phaseReady
	return nil
}

// applyResumed turns what was in flight into orphans: their outcome is
// unknown, and Next decides by effect class.
func (m *Machine) applyResumed(d event.RunResumed) {
	m.pause = false
	m.judgeBy(d.Policy)
	m.model.resume()
	m.account.refused = nil
	m.compaction.call.resume()
	for _, c := range m.calls.list {
		c.resume(d)
	}
}

func (m *Machine) applyTerminatedBy() error {
	if err := m.closeCycle(); err != nil {
		return err
	}
	m.phase = phaseEnding
	m.hooks.after.due = m.cfg.hookAfter(nil, event.HookAfterRun, "")
	return nil
}

// applyCompleted ends the run. Messages that nobody read stay in the history,
// where a run that continues this one finds them.
func (m *Machine) applyCompleted() error {
	if m.phase != phaseEnding {
		return fmt.Errorf("%w: run.completed without run.terminated_by", ErrMisfit)
	}
	m.messages.read()
	m.phase = phaseEnded
	return nil
}
