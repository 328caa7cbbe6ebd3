package event

import (
	"time"

	"github.com/pawlrun/pawl/llm"
)

// Decided is what an event says of what its run did, the same for each run that
// does the same, such as a replay or a fork of it. It leaves out of the event
// what depends on when, where and within which limits the run is driven, and what
// a provider says for itself alone. It is nil for an event that tells only how
// the run came to go on, what was set aside and charged, or how what is settled
// elsewhere came about: an intent, an attempt that failed, a child.
func Decided(d Data) Data {
	switch d := d.(type) {
	case RunForked, RunParked, RunResumed, PauseRequested,
		BudgetRaised, BudgetReserved, BudgetRefused, BudgetCommitted, BudgetWarning, BudgetOverrun, CacheBreak,
		CycleStart, ModelRequested, ModelAttemptFailed, ModelRetrying, ToolStarted, ToolAttemptFailed, ToolRetrying,
		ChildStarted, ChildParked, ChildWaiting, ChildFinished:
		return nil
	case RunStarted:
		d.Replays, d.Fence, d.Sandbox, d.Confinement, d.Warnings = "", nil, "", nil, nil
		return d
	case InputReceived:
		d.Command = 0
		return d
	case ModelResponse:
		d.Attempt, d.ResponseID, d.RequestID, d.Parts = 0, "", "", said(d.Parts)
		return d
	case ToolCall:
		d.ProviderID, d.Agent, d.Facts = "", false, nil
		return d
	case ToolPendingApproval:
		d.ExpiresAt = nil
		return d
	case ToolApprovalResolved:
		d.At = time.Time{}
		return d
	case HookResult:
		if d.Observer {
			return nil
		}
		d.DurationMs = 0
		return d
	case ToolResult:
		d.DurationMs, d.Retryable, d.Tree, d.Reached = 0, false, "", nil
		return d
	case RunTerminatedBy:
		if d.Error != nil {
			d.Error = d.Error.decided()
		}
		return d
	case RunCompleted:
		d.Outcome.Usage, d.Outcome.Cost = llm.Usage{}, nil
		if d.Outcome.Error != nil {
			d.Outcome.Error = d.Outcome.Error.decided()
		}
		return d
	}
	return d
}

// said are an answer's parts without what goes back to its provider unread.
func said(parts Answer) Answer {
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

// CallOf is the call that an event is about, or "".
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
