package perform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

// maxCalls is how many calls an answer may make. No model makes as many, and the
// cost to settle each of them grows with their number.
const maxCalls = 256

// unfit returns why an answer cannot be kept as its adapter returned it: it
// contains a part that no conversation or journal can hold, or more calls than a
// run can settle.
func unfit(parts llm.Parts) error {
	calls := 0
	for i, p := range parts {
		var raw json.RawMessage
		switch p := p.(type) {
		case llm.Text:
			raw = p.Raw
		case llm.Reasoning:
			raw = p.Raw
		case llm.ToolCall:
			if calls++; calls > maxCalls {
				return adapterPanic(fmt.Sprintf("gave an answer of more than %d calls", maxCalls))
			}
			raw = p.Raw
		case llm.Item:
			raw = p.Raw
		case llm.Media:
		case llm.ToolResult:
			return adapterPanic(fmt.Sprintf("gave an answer whose part %d is the result of a call", i+1))
		default:
			return adapterPanic(fmt.Sprintf("gave an answer whose part %d is %T", i+1, p))
		}
		if len(raw) > 0 && (!json.Valid(raw) || drive.NestedTooDeep(raw)) {
			return adapterPanic(fmt.Sprintf("gave an answer whose part %d has a raw form that is no JSON, or is nested deeper than %d levels", i+1, drive.MaxNesting))
		}
	}
	return nil
}

// response gives every call of an answer its id and moves the arguments out:
// they are stored once, in tool_call.
func (p *Performer) response(a *machine.CallModel, r *llm.Response) event.ModelResponse {
	usage := used(a, r, 0)
	e := event.ModelResponse{
		Cycle: a.Cycle, Attempt: a.Attempt, ToolCalls: []event.CallRef{}, FinishReason: r.Finish, RawFinish: r.RawFinish, FinishDetail: r.FinishDetail,
		Usage: usage, Model: a.Target, Cost: cost(a.Price, usage), Parts: event.Answer(r.Parts),
		ResponseID: r.ID, RequestID: r.RequestID, TextLength: len(r.Parts.Text()), Purpose: a.Purpose,
	}
	if a.Purpose != "" {
		// Calls of such an answer never run, so they get no id.
		e.Parts = slices.DeleteFunc(e.Parts, func(p llm.Part) bool { _, text := p.(llm.Text); return !text })
	}
	for i, part := range e.Parts {
		if c, ok := part.(llm.ToolCall); ok {
			c.CallID = p.Place.Run + "-" + strconv.Itoa(a.Cycle) + "-" + strconv.Itoa(len(e.ToolCalls)+1)
			e.Parts[i] = wellFormed(c)
			e.ToolCalls = append(e.ToolCalls, event.CallRef{CallID: c.CallID, Tool: c.Name})
		}
	}
	if e.FinishReason == "" {
		e.FinishReason = llm.FinishEnd
		if len(e.ToolCalls) > 0 {
			e.FinishReason = llm.FinishTool
		}
	}
	return e
}

// wellFormed makes a call's arguments storable: missing arguments become an
// empty object, and text that is not JSON, or nested too deep for the journal's
// readers, is kept as a string. The journal stores JSON without spaces, so they are
// removed: a fold would send and reserve other bytes than the live run.
func wellFormed(c llm.ToolCall) llm.ToolCall {
	switch {
	case len(c.Args) == 0 && c.ArgsText == "":
		c.Args = json.RawMessage("{}")
	case len(c.Args) > 0 && (!json.Valid(c.Args) || drive.NestedTooDeep(c.Args)):
		c.Args, c.ArgsText = nil, string(c.Args)
	case len(c.Args) > 0:
		var compact bytes.Buffer
		if json.Compact(&compact, c.Args) == nil && compact.Len() < len(c.Args) {
			c.Args = compact.Bytes()
		}
	}
	return c
}
