package cli

import (
	"strings"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

// aldoWords translates a run to ALDO's run events. Most names are the journal's
// own; events without a counterpart in ALDO are left out.
type aldoWords struct{}

// aldoHead is the head of every event.
type aldoHead struct {
	Type  string    `json:"type"`
	RunID string    `json:"runId"`
	At    time.Time `json:"at"`
}

func (aldoWords) end() []object { return nil }

func (aldoWords) translate(e event.Event) []object {
	head := aldoHead{Type: string(e.Type()), RunID: e.Run, At: e.Time}
	switch d := e.Data.(type) {
	case event.RunStarted:
		return []object{{head, "agent?", d.Name}}
	case event.ModelResponse:
		if d.Purpose != "" {
			return nil
		}
		return []object{{head, "cycle", d.Cycle, "textLength", d.TextLength, "text", llm.Parts(d.Parts).Text(), "toolCalls", d.ToolCalls,
			"finishReason", d.FinishReason, "usage", d.Usage}}
	case event.ToolCall:
		if d.EditedBy != "" {
			return nil
		}
		return []object{{head, "callId", d.CallID, "tool", d.Tool, "args", argsOf(d)}}
	case event.ToolResult:
		return []object{{head, "callId", d.CallID, "tool", d.Tool, "output", d.Output, "isError", d.IsError, "exitCode?", d.ExitCode}}
	case event.PolicyDecision:
		head.Type = "policy_decision"
		return []object{{head, d}}
	case event.ToolPendingApproval:
		return []object{{head, "callId", d.CallID, "tool", d.Tool, "args", d.Args, "reason", d.Reason}}
	case event.ToolApprovalResolved:
		return []object{{head, "callId", d.CallID, "kind", d.Kind, "approver", d.Approver, "reason?", d.Reason}}
	case event.CycleStart, event.ToolResults, event.HistoryCompressed, event.Checkpoint:
		return []object{{head, d}}
	case event.Nudge:
		head.Type = "message"
		return []object{{head, "role", "user", "text", d.Text}}
	case event.InputReceived:
		head.Type = "message"
		return []object{{head, "role", "user", "text", view.InputText(d)}}
	case event.RunTerminatedBy:
		return []object{{head, "reason", aldoReason(d.Reason, d.Kind), "index?", d.Index}}
	case event.RunCompleted:
		return []object{aldoLast(head, d.Outcome)}
	}
	return nil
}

// aldoReason names a condition by its kind, and a stop because of money by ALDO's
// condition for it.
func aldoReason(r event.Reason, kind string) string {
	switch {
	case r == event.ReasonConditionMet && kind != "":
		return kind
	case budget.IsMoney(strings.TrimPrefix(string(r), string(event.BudgetReason("")))):
		return string(stop.BudgetExhausted)
	}
	return string(r)
}

// aldoLast returns the one terminal event: run.completed, run.cancelled or error.
func aldoLast(head aldoHead, o event.Outcome) object {
	message := ""
	switch {
	case o.Status == event.StatusCancelled:
		head.Type = "run.cancelled"
	case o.Error != nil && o.Status == event.StatusFailed:
		head.Type, message = "error", o.Error.Message
	}
	return object{head, "ok", o.OK, "output", o.FinalOutput, "finishReason", o.Status, "terminatedBy", aldoReason(o.Reason, o.Kind),
		"cycles", o.Cycles, "error?", message}
}
