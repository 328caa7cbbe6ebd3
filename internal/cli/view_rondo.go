package cli

import (
	"cmp"
	"encoding/json"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/llm"
)

// rondoWords translates a run to RondoFlow's loop events and, within an iteration,
// to its agent events. A run that is not a loop counts its cycles as the total.
type rondoWords struct {
	speech speech
	// loop reports that the run is a refinement loop; iterations holds those that
	// ended.
	loop       bool
	iterations int
}

func (w *rondoWords) end() []object { return nil }

func (w *rondoWords) translate(e event.Event) []object {
	switch d := e.Data.(type) {
	case event.RunStarted:
		var c flow.Config
		if w.loop = d.Machine == flow.Version && json.Unmarshal(d.Config, &c) == nil && c.Plan.Refine; w.loop {
			return nil // a loop has only its five events
		}
		return []object{{"type", "agent:status", "agentId", e.Run, "status", "running"}}
	case event.Text:
		return piece("agent:text", w.speech.piece(d.Text))
	case event.TextReset:
		w.speech.reset()
	case event.ModelResponse:
		if d.Purpose != "" {
			return nil
		}
		return piece("agent:text", w.speech.rest(llm.Parts(d.Parts).Text()))
	case event.ToolCall:
		if d.EditedBy != "" {
			return nil // the reader knows the call, and shows it once
		}
		return []object{{"type", "agent:tool_use", "id", d.CallID, "name", d.Tool, "input", argsOf(d)}}
	case event.ToolResult:
		return []object{{"type", "agent:tool_result", "id", d.CallID, "name", d.Tool, "output", d.Output, "isError", d.IsError}}
	case event.ToolPendingApproval:
		return []object{{"type", "agent:approval", "id", d.CallID, "name", d.Tool, "args", d.Args}}
	case event.Iteration:
		w.iterations = d.Number
		return []object{{"type", "iteration", "iteration", d.Number, "maxIterations", d.MaxIterations, "output", d.Output}}
	case event.Progress:
		return []object{{"type", "progress", "iteration", d.Number, "learning", d.Learning}}
	case event.ReviewRequested:
		return []object{{"type", "manual_approval_required", "iteration", d.Number, "output", d.Output, "loopId", e.Run + "/" + d.LoopID}}
	case event.RunCompleted:
		return []object{w.last(d.Outcome)}
	}
	return nil
}

// last returns the one terminal event: completed if a goal was met or the cap was
// reached, or else failed, even for a loop that was stopped.
func (w *rondoWords) last(o event.Outcome) object {
	n := cmp.Or(w.iterations, o.Cycles)
	if w.loop {
		n = o.Iterations
	}
	if event.LoopCompleted(o) {
		return object{"type", "completed", "totalIterations", n, "finalOutput", o.FinalOutput}
	}
	message := string(o.Reason)
	if o.Error != nil {
		message = o.Error.Message
	}
	return object{"type", "failed", "iteration", cmp.Or(o.AtIteration, n), "error", message}
}
