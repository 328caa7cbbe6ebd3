package event

import (
	"time"

	"github.com/pawlrun/pawl/llm"
)

// Decided returns the part of an event that is the same for each run that does the
// same, such as a replay or a fork. It omits what depends on when, where and within
// which limits the run is driven, data that only the provider reads, and explanations
// for people, whose wording may change. It returns nil for an event that only describes
// how the run came to continue, reservations and charges, or the progress towards a
// settlement: an intent, a failed attempt, a child.
func Decided(d Data) Data {
	if byName()[d.EventType()].aside {
		return nil
	}
	switch d := Unexplained(d).(type) {
	case RunStarted:
		d.Replays, d.Fence, d.Sandbox, d.Confinement, d.Warnings = "", nil, "", nil, nil
		d.Root, d.Parent, d.Step, d.Depth = "", "", "", 0
		d.Principal, d.Trace, d.Served, d.OnOwnerDisconnect = Principal{}, Trace{}, false, ""
		return d
	case CancelRequested:
		d.Principal = Principal{}
		return d
	case PermissionAdded:
		d.Principal = Principal{}
		return d
	case InputReceived:
		d.Command, d.MessageID, d.Taint, d.Principal = 0, "", Taint{}, Principal{}
		return d
	case ModelResponse:
		d.Attempt, d.ResponseID, d.RequestID, d.Parts = 0, "", "", readableParts(d.Parts)
		return d
	case ToolCall:
		d.ProviderID, d.Agent, d.Facts = "", false, nil
		return d
	case ToolPendingApproval:
		d.ExpiresAt = nil
		return d
	case ToolApprovalResolved:
		d.At, d.Command, d.Principal = time.Time{}, 0, Principal{}
		return d
	case ReviewRequested:
		d.ExpiresAt = nil
		return d
	case ReviewResolved:
		d.At, d.Command, d.Principal = time.Time{}, 0, Principal{}
		return d
	case GoalBlocked:
		d.ExpiresAt = nil
		return d
	case GoalUnanswered:
		d.At, d.Command, d.Principal = time.Time{}, 0, Principal{}
		return d
	case HookResult:
		if d.Observer {
			return nil
		}
		d.DurationMs = 0
		return d
	case ToolResult:
		d.DurationMs, d.Retryable, d.Tree, d.Reached, d.Changed, d.Files, d.Raw, d.Structured = 0, false, "", nil, nil, nil, "", ""
		return d
	case CommandFinished:
		d.DurationMs, d.Reached, d.Changed, d.Worktree = 0, nil, nil, nil
		return d
	case StepFinished:
		if d.Worktree = nil; d.Error != nil {
			d.Error = d.Error.decided()
		}
		return d
	case Iteration:
		d.Child = ""
		return d
	case JudgeVerdict:
		d.Child = ""
		return d
	case MessageSent:
		d.ID, d.Taint = "", Taint{}
		return d
	case MessageDelivered:
		d.ID = ""
		return d
	case MessageDropped:
		d.ID = ""
		return d
	case RunTerminatedBy:
		if d.LimitRun = ""; d.Error != nil {
			d.Error = d.Error.decided()
		}
		return d
	case RunCompleted:
		d.Outcome.Usage, d.Outcome.Cost, d.Outcome.LimitRun = llm.Usage{}, nil, ""
		if d.Outcome.Error != nil {
			d.Outcome.Error = d.Outcome.Error.decided()
		}
		return d
	}
	return d
}

// Unexplained returns d without its explanations for people, whose wording may change.
// Texts for the model stay.
func Unexplained(d Data) Data {
	switch d := d.(type) {
	case PolicyDecision:
		if d.Decision == DecisionAsk {
			d.Reason = ""
		}
		return d
	case ToolPendingApproval:
		d.Reason, d.Offer, d.OnExpiry = "", nil, ""
		return d
	case RunParked:
		d.Detail = ""
		return d
	case RunTerminatedBy:
		d.Detail = ""
		return d
	case RunCompleted:
		d.Outcome.NextSafeAction = ""
		return d
	}
	return d
}

// readableParts returns an answer's parts without those that only its provider reads.
func readableParts(parts Answer) Answer {
	var out Answer
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			out = append(out, llm.Text{Text: p.Text})
		case llm.Reasoning:
			out = append(out, llm.Reasoning{Text: p.Text})
		case llm.ToolCall:
			out = append(out, llm.ToolCall{CallID: p.CallID, Name: p.Name})
		case llm.Item:
			out = append(out, llm.Item{Type: p.Type})
		default:
			out = append(out, p)
		}
	}
	return out
}

func (f Failure) decided() *Failure {
	f.RequestID = ""
	return &f
}

// CallOf returns the call that an event concerns, or "".
func CallOf(d Data) string {
	switch d := d.(type) {
	case ToolCall:
		return d.CallID
	case HookResult:
		return d.CallID
	case PolicyDecision:
		return d.CallID
	case ToolPendingApproval:
		return d.CallID
	case ToolApprovalResolved:
		return d.CallID
	case PermissionAdded:
		return d.CallID
	case ToolTask:
		return d.CallID
	case ToolInputRequired:
		return d.CallID
	case ToolInputResolved:
		return d.CallID
	case ToolStarted:
		return d.CallID
	case ToolAttemptFailed:
		return d.CallID
	case ToolRetrying:
		return d.CallID
	case ToolResult:
		return d.CallID
	case Stuck:
		return d.CallID
	}
	return ""
}
