package agent

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/fence"
	"github.com/pawlrun/pawl/history"
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
	m.messages.read()
	return nil
}

// onOpen changes a call that has no result yet: a second result, and anything after
// the first, has no place.
func (s *calls) onOpen(r *run, e *event.Event, id string, change func(*call)) error {
	c := s.touch(id)
	switch {
	case r.phase != phaseTools || c == nil:
		return fmt.Errorf("%w: %s of %s, which is no call of cycle %d", ErrMisfit, e.Type(), id, r.cycle)
	case c.result != nil:
		return fmt.Errorf("%w: %s of %s, which is settled", ErrMisfit, e.Type(), id)
	}
	c.since = e.Time
	change(c)
	return nil
}

func (m *Machine) applyToolCall(d *event.ToolCall) error {
	c := m.calls.touch(d.CallID)
	if m.run.phase != phaseTools || c == nil || c.resolved != nil {
		return fmt.Errorf("%w: tool_call %s is not due in cycle %d", ErrMisfit, d.CallID, m.run.cycle)
	}
	c.resolved = d
	if c.given != nil {
		return nil // the conversation keeps what the model said
	}
	c.repeats.own = d.Digest
	c.hooks.before.due = m.run.cfg.hookAfter(nil, event.HookBeforeTool, c.ref.Name)
	return m.messages.history.Call(c.index, *d)
}

func (s *calls) applyStarted(r *run, e *event.Event, d event.ToolStarted) error {
	return s.onOpen(r, e, d.CallID, func(c *call) {
		if c.attempt == 0 {
			r.Spent.ToolCalls++
		}
		c.start(d.Attempt)
	})
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
	return m.messages.history.Results(m.messages.toldResults(m.calls.list))
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

// applyResumed turns what was in flight into orphans: their outcome is
// unknown, and Next decides by effect class.
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
	if err := m.closeCycle(); err != nil {
		return err
	}
	m.run.phase = phaseEnding
	m.hooks.after.due = m.run.cfg.hookAfter(nil, event.HookAfterRun, "")
	return nil
}

// applyCompleted ends the run. Messages that nobody read stay in the history,
// where a run that continues this one finds them.
func (m *Machine) applyCompleted() error {
	if m.run.phase != phaseEnding {
		return fmt.Errorf("%w: run.completed without run.terminated_by", ErrMisfit)
	}
	m.messages.read()
	m.run.phase = phaseEnded
	return nil
}

// measure takes in the messages that are new, so that the size of the next request is
// known. While calls are open there is none.
func (m *Machine) measure() {
	switch m.run.phase {
	case phaseReady, phaseModel, phaseSettled:
		m.messages.measure(m.run.cfg.Tools)
		m.compaction.measure(&m.run.cfg, &m.messages)
	}
}
