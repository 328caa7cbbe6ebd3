package agent

import (
	"bytes"

	"github.com/pawlrun/pawl/event"
)

// cutShort gives the calls of a cycle that the run's end cut short their
// results in the conversation, so that a run can continue this one: no provider
// takes a call without a result. What the journal does not have follows from it
// alone, so that every fold finds the same.
func (s *calls) cutShort(r *run, said *messages) error {
	for _, c := range s.list {
		c.cutShort(r)
		if c.resolved != nil || c.given != nil {
			continue
		}
		asked := event.ToolCall{CallID: c.ref.CallID, Args: c.ref.Args, ArgsText: c.ref.ArgsText}
		if len(bytes.TrimSpace(asked.Args)) == 0 && asked.ArgsText == "" {
			asked.Args = []byte("{}") // only a call's own event keeps its arguments
		}
		if err := said.history.Call(c.index, asked); err != nil {
			return err
		}
	}
	return said.history.Results(said.toldResults(s.list))
}

func (c *call) cutShort(r *run) {
	c.pending.Void()
	if c.result == nil {
		d := c.failed(event.ErrorCancelled, "the run ended before this call ran")
		if c.attempt > 0 {
			d = c.failed(event.ErrorInDoubt, "the run ended while this call was running, so it is not known whether it took effect")
		}
		c.result = &d
	}
	for h := c.hooks.after.due; h != nil; h = c.hooks.after.due {
		skipped := r.skipped(h, c.ref.CallID)
		c.applyAfterTool(&r.cfg, &skipped)
	}
}
