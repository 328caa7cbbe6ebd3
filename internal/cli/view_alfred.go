package cli

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// alfredWords translates a run to Alfred's QueryEvents: text, tool_use,
// tool_result, retrying, error and exactly one done.
type alfredWords struct {
	speech speech
	done   bool
}

// alfredStatus is how a loop ended.
type alfredStatus string

const (
	alfredSuccess       alfredStatus = "success"
	alfredMaxTurns      alfredStatus = "max_turns"
	alfredProviderError alfredStatus = "provider_error"
	alfredAborted       alfredStatus = "aborted"
)

func (w *alfredWords) translate(e event.Event) []object {
	switch d := e.Data.(type) {
	case event.Text:
		return piece("text", w.speech.piece(d.Text))
	case event.TextReset:
		w.speech.reset()
	case event.ModelResponse:
		if d.Purpose != "" {
			return nil
		}
		return piece("text", w.speech.rest(llm.Parts(d.Parts).Text()))
	case event.ToolCall:
		if d.EditedBy != "" {
			return nil // the reader knows the call, and shows it once
		}
		return []object{{"type", "tool_use", "id", d.CallID, "name", d.Tool, "describe", alfredLabel(d), "input", argsOf(d)}}
	case event.ToolResult:
		return []object{{"type", "tool_result", "id", d.CallID, "name", d.Tool, "output", d.Output, "isError", d.IsError}}
	case event.ModelRetrying:
		return []object{{"type", "retrying", "attempt", d.Attempt, "delayMs", d.DelayMs, "reason", d.Reason}}
	case event.RunCompleted:
		return w.finish(d.Outcome)
	}
	return nil
}

// alfredLabel returns a short label: if a tool has no label for a call,
// its arguments are the label, and they may be a whole file.
func alfredLabel(d event.ToolCall) string {
	return clip(strings.Join(strings.Fields(harmless(label(d))), " "), 200)
}

// end closes a stream that parked: Alfred's loop has no such state, and its reader
// waits for a done.
func (w *alfredWords) end() []object {
	if w.done {
		return nil
	}
	w.done = true
	return []object{{"type", "done", "status", alfredAborted}}
}

func (w *alfredWords) finish(o event.Outcome) []object {
	w.done = true
	status := alfredStatusOf(o)
	done := object{"type", "done", "status", status}
	if status == alfredMaxTurns || status == alfredProviderError {
		return []object{{"type", "error", "message", alfredMessage(o)}, done}
	}
	return []object{done}
}

// alfredStatusOf distinguishes completion, limit and failure: a limit that
// is a condition of the file is still a limit.
func alfredStatusOf(o event.Outcome) alfredStatus {
	switch r := o.Reason; {
	case o.Status == event.StatusCancelled:
		return alfredAborted
	case o.Status == event.StatusCompleted, r == event.ReasonNoAnswerOrCall:
		return alfredSuccess
	case r == event.ReasonMaxCycles, r == event.ReasonStuck, r == event.ReasonRepeatedFailure, o.Limit != "":
		return alfredMaxTurns
	}
	return alfredProviderError
}

func alfredMessage(o event.Outcome) string {
	switch {
	case o.Error != nil:
		return o.Error.Message
	case o.Reason == event.ReasonMaxCycles:
		return fmt.Sprintf("the limit of %d turns is reached", o.Cycles)
	}
	return "stopped: " + reason(o)
}
