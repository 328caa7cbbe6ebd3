package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// alfredWords says a run as Alfred's QueryEvents: text, tool_use, tool_result,
// retrying, error and exactly one done (ALF-17 to 25).
type alfredWords struct {
	speech speech
	done   bool
}

// The objects, one type for each event of that vocabulary.
type (
	alfredText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	alfredToolUse struct {
		Type     string          `json:"type"`
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Describe string          `json:"describe"`
		Input    json.RawMessage `json:"input"`
	}
	alfredToolResult struct {
		Type    string `json:"type"`
		ID      string `json:"id"`
		Name    string `json:"name"`
		Output  string `json:"output"`
		IsError bool   `json:"isError"`
	}
	alfredRetrying struct {
		Type    string `json:"type"`
		Attempt int    `json:"attempt"`
		DelayMs int64  `json:"delayMs"`
		Reason  string `json:"reason"`
	}
	alfredError struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	alfredDone struct {
		Type   string       `json:"type"`
		Status alfredStatus `json:"status"`
	}
)

// alfredStatus is how a loop ended (ALF-23).
type alfredStatus string

const (
	alfredSuccess       alfredStatus = "success"
	alfredMaxTurns      alfredStatus = "max_turns"
	alfredProviderError alfredStatus = "provider_error"
	alfredAborted       alfredStatus = "aborted"
)

func (w *alfredWords) say(e event.Event) []any {
	switch d := e.Data.(type) {
	case event.Text:
		return alfredSpeech(w.speech.piece(d.Text))
	case event.TextReset:
		w.speech.reset()
	case event.ModelResponse:
		if d.Purpose != "" {
			return nil
		}
		return alfredSpeech(w.speech.rest(llm.Parts(d.Parts).Text()))
	case event.ToolCall:
		if d.EditedBy != "" {
			return nil // its reader knows the call, and shows it once
		}
		return []any{alfredToolUse{"tool_use", d.CallID, d.Tool, alfredLabel(d), argsOf(d)}}
	case event.ToolResult:
		return []any{alfredToolResult{"tool_result", d.CallID, d.Tool, d.Output, d.IsError}}
	case event.ModelRetrying:
		return []any{alfredRetrying{"retrying", d.Attempt, d.DelayMs, d.Reason}}
	case event.RunCompleted:
		return w.finish(d.Outcome)
	}
	return nil
}

// alfredLabel is short (ALF-18): where a tool has no label for a call, its
// arguments stand for it, and they may be a whole file.
func alfredLabel(d event.ToolCall) string {
	return clip(strings.Join(strings.Fields(harmless(label(d))), " "), 200)
}

// end closes a stream that parked: Alfred's loop has no such state, and its
// reader waits for a done.
func (w *alfredWords) end() []any {
	if w.done {
		return nil
	}
	w.done = true
	return []any{alfredDone{"done", alfredAborted}}
}

// alfredSpeech leaves empty pieces out (ALF-32).
func alfredSpeech(text string) []any {
	if text == "" {
		return nil
	}
	return []any{alfredText{"text", text}}
}

func (w *alfredWords) finish(o event.Outcome) []any {
	w.done = true
	status := alfredStatusOf(o)
	done := alfredDone{"done", status}
	if status == alfredMaxTurns || status == alfredProviderError {
		return []any{alfredError{"error", alfredMessage(o)}, done}
	}
	return []any{done}
}

// alfredStatusOf tells completion from limit from failure (ALF-24): a limit that
// is a condition of the file's is one all the same.
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
