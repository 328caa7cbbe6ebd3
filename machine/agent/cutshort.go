package agent

import (
	"bytes"

	"github.com/pawlrun/pawl/event"
)

// closeCycle gives the calls of a cycle that the run's end cut short their
// results in the conversation, so that a run can continue this one: no provider
// takes a call without a result. What the journal does not have follows from it
// alone, so that every fold finds the same.
func (m *Machine) closeCycle() error {
	if m.run.phase != phaseTools {
		return nil
	}
	for _, c := range m.calls.list {
		if err := m.closeCall(c); err != nil {
			return err
		}
	}
	return m.messages.history.Results(m.messages.toldResults(m.calls.list))
}

func (m *Machine) closeCall(c *call) error {
	c.pending.Void()
	switch {
	case c.result != nil:
	case c.attempt > 0:
		r := c.failed(event.ErrorInDoubt, "the run ended while this call was running, so it is not known whether it took effect")
		c.result = &r
	default:
		r := c.failed(event.ErrorCancelled, "the run ended before this call ran")
		c.result = &r
	}
	for h := c.hooks.after.due; h != nil; h = c.hooks.after.due {
		skipped := m.run.skipped(h, c.ref.CallID)
		c.applyAfterTool(&m.run.cfg, &skipped)
	}
	if c.resolved != nil || c.given != nil {
		return nil
	}
	asked := event.ToolCall{CallID: c.ref.CallID, Args: c.ref.Args, ArgsText: c.ref.ArgsText}
	if len(bytes.TrimSpace(asked.Args)) == 0 && asked.ArgsText == "" {
		asked.Args = []byte("{}") // only a call's own event keeps its arguments
	}
	return m.messages.history.Call(c.index, asked)
}
