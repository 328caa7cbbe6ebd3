package main

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

// aldoWords says a run as ALDO's run events. Most names are the journal's own;
// what ALDO has no word for is left out.
type aldoWords struct{}

// aldoHead is what every event of that vocabulary begins with.
type aldoHead struct {
	Type  string    `json:"type"`
	RunID string    `json:"runId"`
	At    time.Time `json:"at"`
}

// The objects, one type for each event of that vocabulary.
type (
	aldoStarted struct {
		aldoHead
		Agent string `json:"agent,omitempty"`
	}
	aldoMessage struct {
		aldoHead
		Role string `json:"role"`
		Text string `json:"text"`
	}
	aldoCycle struct {
		aldoHead
		event.CycleStart
	}
	aldoResponse struct {
		aldoHead
		Cycle        int             `json:"cycle"`
		TextLength   int             `json:"textLength"`
		Text         string          `json:"text"`
		ToolCalls    []event.CallRef `json:"toolCalls"`
		FinishReason llm.Finish      `json:"finishReason"`
		Usage        llm.Usage       `json:"usage"`
	}
	aldoToolCall struct {
		aldoHead
		CallID string          `json:"callId"`
		Tool   string          `json:"tool"`
		Args   json.RawMessage `json:"args"`
	}
	aldoToolResult struct {
		aldoHead
		CallID   string `json:"callId"`
		Tool     string `json:"tool"`
		Output   string `json:"output"`
		IsError  bool   `json:"isError"`
		ExitCode *int   `json:"exitCode,omitempty"`
	}
	aldoToolResults struct {
		aldoHead
		event.ToolResults
	}
	aldoPolicy struct {
		aldoHead
		event.PolicyDecision
	}
	aldoPending struct {
		aldoHead
		CallID string          `json:"callId"`
		Tool   string          `json:"tool"`
		Args   json.RawMessage `json:"args"`
		Reason string          `json:"reason"`
	}
	aldoResolved struct {
		aldoHead
		CallID   string             `json:"callId"`
		Kind     event.ApprovalKind `json:"kind"`
		Approver string             `json:"approver"`
		Reason   string             `json:"reason,omitempty"`
	}
	aldoCompressed struct {
		aldoHead
		event.HistoryCompressed
	}
	aldoTerminated struct {
		aldoHead
		Reason string `json:"reason"`
		Index  *int   `json:"index,omitempty"`
	}
	aldoCheckpoint struct {
		aldoHead
		event.Checkpoint
	}
	aldoEnd struct {
		aldoHead
		OK           bool         `json:"ok"`
		Output       string       `json:"output"`
		FinishReason event.Status `json:"finishReason"`
		TerminatedBy string       `json:"terminatedBy"`
		Cycles       int          `json:"cycles"`
		Error        string       `json:"error,omitempty"`
	}
)

func (aldoWords) end() []any { return nil }

func (aldoWords) say(e event.Event) []any {
	o := aldoObject(e)
	if o == nil {
		return nil
	}
	return []any{o}
}

func aldoObject(e event.Event) any {
	head := aldoHead{Type: string(e.Type()), RunID: e.Run, At: e.Time}
	switch d := e.Data.(type) {
	case event.RunStarted:
		return aldoStarted{head, d.Name}
	case event.CycleStart:
		return aldoCycle{head, d}
	case event.ModelResponse:
		if d.Purpose != "" {
			return nil
		}
		return aldoResponse{head, d.Cycle, d.TextLength, llm.Parts(d.Parts).Text(), d.ToolCalls, d.FinishReason, d.Usage}
	case event.ToolCall:
		if d.EditedBy != "" {
			return nil
		}
		return aldoToolCall{head, d.CallID, d.Tool, argsOf(d)}
	case event.ToolResult:
		return aldoToolResult{head, d.CallID, d.Tool, d.Output, d.IsError, d.ExitCode}
	case event.ToolResults:
		return aldoToolResults{head, d}
	case event.PolicyDecision:
		head.Type = "policy_decision"
		return aldoPolicy{head, d}
	case event.ToolPendingApproval:
		return aldoPending{head, d.CallID, d.Tool, d.Args, d.Reason}
	case event.ToolApprovalResolved:
		return aldoResolved{head, d.CallID, d.Kind, d.Approver, d.Reason}
	case event.HistoryCompressed:
		return aldoCompressed{head, d}
	case event.Checkpoint:
		return aldoCheckpoint{head, d}
	case event.Nudge:
		head.Type = "message"
		return aldoMessage{head, "user", d.Text}
	case event.InputReceived:
		head.Type = "message"
		return aldoMessage{head, "user", said(d)}
	case event.RunTerminatedBy:
		return aldoTerminated{head, aldoReason(d.Reason, d.Kind), d.Index}
	case event.RunCompleted:
		return aldoLast(head, d.Outcome)
	}
	return nil
}

// aldoReason names a condition by its kind, and a money stop by the condition
// that ALDO has for it.
func aldoReason(r event.Reason, kind string) string {
	switch {
	case r == event.ReasonConditionMet && kind != "":
		return kind
	case budget.IsMoney(strings.TrimPrefix(string(r), string(event.BudgetReason("")))):
		return string(stop.BudgetExhausted)
	}
	return string(r)
}

// aldoLast is the one terminal event: run.completed, run.cancelled or error.
func aldoLast(head aldoHead, o event.Outcome) any {
	end := aldoEnd{head, o.OK, o.FinalOutput, o.Status, aldoReason(o.Reason, o.Kind), o.Cycles, ""}
	switch {
	case o.Status == event.StatusCancelled:
		end.Type = "run.cancelled"
	case o.Error != nil && o.Status == event.StatusFailed:
		end.Type, end.Error = "error", o.Error.Message
	}
	return end
}
