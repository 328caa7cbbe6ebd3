package main

import (
	"cmp"
	"encoding/json"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine/flow"
)

// rondoWords says a run as RondoFlow's loop events and, for what happens
// within an iteration, as its agent events. A run that is not a loop counts
// its cycles as the total.
type rondoWords struct {
	speech speech
	// loop says that the run is a refinement loop, and iterations are those that ended.
	loop       bool
	iterations int
}

// The objects, one type for each event of that vocabulary (RON-35 to 39).
type (
	rondoIteration struct {
		Type          string `json:"type"`
		Iteration     int    `json:"iteration"`
		MaxIterations int    `json:"maxIterations"`
		Output        string `json:"output"`
	}
	rondoProgress struct {
		Type      string `json:"type"`
		Iteration int    `json:"iteration"`
		Learning  string `json:"learning"`
	}
	rondoReview struct {
		Type      string `json:"type"`
		Iteration int    `json:"iteration"`
		Output    string `json:"output"`
		LoopID    string `json:"loopId"`
	}
	rondoCompleted struct {
		Type            string `json:"type"`
		TotalIterations int    `json:"totalIterations"`
		FinalOutput     string `json:"finalOutput"`
	}
	rondoFailed struct {
		Type      string `json:"type"`
		Iteration int    `json:"iteration"`
		Error     string `json:"error"`
	}
	rondoStatus struct {
		Type    string `json:"type"`
		AgentID string `json:"agentId"`
		Status  string `json:"status"`
	}
	rondoText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	rondoToolUse struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	rondoToolResult struct {
		Type    string `json:"type"`
		ID      string `json:"id"`
		Name    string `json:"name"`
		Output  string `json:"output"`
		IsError bool   `json:"isError"`
	}
	rondoApproval struct {
		Type string          `json:"type"`
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}
)

func (w *rondoWords) end() []any { return nil }

func (w *rondoWords) say(e event.Event) []any {
	switch d := e.Data.(type) {
	case event.RunStarted:
		var c flow.Config
		if w.loop = d.Machine == flow.Version && json.Unmarshal(d.Config, &c) == nil && c.Plan.Refine; w.loop {
			return nil // whose words are the five of its loop
		}
		return []any{rondoStatus{"agent:status", e.Run, "running"}}
	case event.Text:
		return rondoSpeech(w.speech.piece(d.Text))
	case event.TextReset:
		w.speech.reset()
	case event.ModelResponse:
		if d.Purpose != "" {
			return nil
		}
		return rondoSpeech(w.speech.rest(llm.Parts(d.Parts).Text()))
	case event.ToolCall:
		if d.EditedBy != "" {
			return nil // its reader knows the call, and shows it once
		}
		return []any{rondoToolUse{"agent:tool_use", d.CallID, d.Tool, argsOf(d)}}
	case event.ToolResult:
		return []any{rondoToolResult{"agent:tool_result", d.CallID, d.Tool, d.Output, d.IsError}}
	case event.ToolPendingApproval:
		return []any{rondoApproval{"agent:approval", d.CallID, d.Tool, d.Args}}
	case event.Iteration:
		w.iterations = d.Number
		return []any{rondoIteration{"iteration", d.Number, d.MaxIterations, d.Output}}
	case event.Progress:
		return []any{rondoProgress{"progress", d.Number, d.Learning}}
	case event.ReviewRequested:
		return []any{rondoReview{"manual_approval_required", d.Number, d.Output, d.LoopID}}
	case event.RunCompleted:
		return []any{w.last(d.Outcome)}
	}
	return nil
}

// last is the one terminal event: completed when a goal was met or the cap was
// reached, else failed, also for a loop that was stopped.
func (w *rondoWords) last(o event.Outcome) any {
	n := cmp.Or(w.iterations, o.Cycles)
	if w.loop {
		n = o.Iterations
	}
	if event.LoopCompleted(o) {
		return rondoCompleted{"completed", n, o.FinalOutput}
	}
	message := string(o.Reason)
	if o.Error != nil {
		message = o.Error.Message
	}
	return rondoFailed{"failed", cmp.Or(o.AtIteration, n), message}
}

func rondoSpeech(text string) []any {
	if text == "" {
		return nil
	}
	return []any{rondoText{"agent:text", text}}
}
