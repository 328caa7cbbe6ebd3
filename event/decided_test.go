package event_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Each pair is what two runs that do the same have of one event.
func TestRunsThatDoTheSameAreDecidedAlike(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	answer := func(id, raw string) event.Answer {
		return event.Answer{
			llm.Reasoning{Text: "hm", Signature: id, Raw: []byte(raw)}, llm.Text{Text: "so", Raw: []byte(raw)},
			llm.ToolCall{CallID: "r-1-1", Name: "look", ProviderID: id, Signature: id, Raw: []byte(raw)}, llm.Item{Type: "search", Raw: []byte(raw)},
		}
	}
	for _, pair := range [][2]event.Data{
		{event.RunStarted{Kind: "Agent", Fence: &event.Fence{Nonce: "a"}}, event.RunStarted{Kind: "Agent", Fence: &event.Fence{Nonce: "b"}, Replays: "r"}},
		{event.RunStarted{Sandbox: "landlock", Confinement: &event.Confinement{MemoryBytes: 9}, Warnings: []string{"the default cap"}}, event.RunStarted{Sandbox: "none"}},
		{event.InputReceived{Text: "more", Command: 4}, event.InputReceived{Text: "more"}},
		{
			event.ModelResponse{Attempt: 1, ResponseID: "a", RequestID: "a", Parts: answer("a", `"a"`), Usage: llm.Usage{Input: 3}},
			event.ModelResponse{Attempt: 2, ResponseID: "b", RequestID: "b", Parts: answer("b", `"b"`), Usage: llm.Usage{Input: 3}},
		},
		{event.ToolCall{CallID: "r-1-1", ProviderID: "a", Agent: true}, event.ToolCall{CallID: "r-1-1", ProviderID: "b", Facts: &event.Facts{Risk: "write"}}},
		{event.ToolPendingApproval{CallID: "r-1-1", ExpiresAt: &now}, event.ToolPendingApproval{CallID: "r-1-1"}},
		{event.ToolApprovalResolved{CallID: "r-1-1", Kind: event.ApprovalRejected, At: now}, event.ToolApprovalResolved{CallID: "r-1-1", Kind: event.ApprovalRejected}},
		{event.HookResult{Hook: "guard", Decision: event.HookBlock, DurationMs: 12}, event.HookResult{Hook: "guard", Decision: event.HookBlock}},
		{
			event.ToolResult{CallID: "r-1-1", Output: "done", DurationMs: 9, Tree: "t", Retryable: true, Reached: []event.Reach{{Host: "h"}}, Changed: []event.Change{{Path: ".git", Kept: "/k"}}},
			event.ToolResult{CallID: "r-1-1", Output: "done"},
		},
		{event.Iteration{Number: 1, Output: "ok", Child: "a"}, event.Iteration{Number: 1, Output: "ok", Child: "b"}},
		{event.JudgeVerdict{Number: 1, Verdict: event.VerdictDone, Child: "a"}, event.JudgeVerdict{Number: 1, Verdict: event.VerdictDone, Child: "b"}},
		{event.InputReceived{Text: "more", MessageID: "a", Taint: event.Taint{Untrusted: &event.TaintSource{Run: "a"}}}, event.InputReceived{Text: "more"}},
		{event.MessageSent{ID: "a", From: "x", Text: "so", Taint: event.Taint{Private: &event.TaintSource{Run: "a"}}}, event.MessageSent{ID: "b", From: "x", Text: "so"}},
		{event.MessageDelivered{ID: "a", To: "x"}, event.MessageDelivered{ID: "b", To: "x"}},
		{event.MessageDropped{ID: "a", Reason: event.DropMailboxFull}, event.MessageDropped{ID: "b", Reason: event.DropMailboxFull}},
		{event.CommandFinished{ID: "test", Output: "ok", DurationMs: 9, Reached: []event.Reach{{Host: "h"}}}, event.CommandFinished{ID: "test", Output: "ok"}},
		{
			event.RunTerminatedBy{Reason: event.ReasonModelError, Error: &event.Failure{Class: "auth", RequestID: "a"}},
			event.RunTerminatedBy{Reason: event.ReasonModelError, Error: &event.Failure{Class: "auth"}},
		},
		{
			event.RunCompleted{Outcome: event.Outcome{Reason: event.ReasonModelError, Usage: llm.Usage{Input: 9}, Cost: &llm.Cost{USD: 1}, Error: &event.Failure{RequestID: "a"}}},
			event.RunCompleted{Outcome: event.Outcome{Reason: event.ReasonModelError, Error: &event.Failure{}}},
		},
	} {
		if diff := cmp.Diff(event.Decided(pair[0]), event.Decided(pair[1])); diff != "" {
			t.Errorf("%s:\n%s", pair[0].EventType(), diff)
		}
	}
	for _, d := range []event.Data{
		event.RunForked{}, event.RunParked{}, event.RunResumed{}, event.PauseRequested{}, event.BudgetRaised{}, event.BudgetReserved{},
		event.BudgetRefused{}, event.BudgetCommitted{}, event.BudgetWarning{}, event.BudgetOverrun{}, event.CacheBreak{}, event.CycleStart{}, event.ModelRequested{},
		event.ToolStarted{}, event.ToolAttemptFailed{}, event.ToolRetrying{}, event.ChildStarted{}, event.ChildParked{}, event.ChildWaiting{},
		event.ChildFinished{}, event.WaitStarted{}, event.WaitFinished{}, event.CommandStarted{}, event.StepStarted{}, event.HookResult{Observer: true}, event.ModelAttemptFailed{}, event.ModelRetrying{},
	} {
		if event.Decided(d) != nil {
			t.Errorf("%s is taken for something that the run did", d.EventType())
		}
	}
}

// Each pair is of runs that part there.
func TestWhatARunDidIsKeptOfItsEvents(t *testing.T) {
	for _, pair := range [][2]event.Data{
		{event.RunStarted{Workspace: "/a"}, event.RunStarted{Workspace: "/b"}},
		{event.InputReceived{Text: "more"}, event.InputReceived{Text: "less"}},
		{event.ModelResponse{Parts: event.Answer{llm.Text{Text: "yes"}}}, event.ModelResponse{Parts: event.Answer{llm.Text{Text: "no"}}}},
		{event.ModelResponse{Model: "a/b"}, event.ModelResponse{Model: "a/c"}},
		{event.ToolCall{Args: []byte(`{"a":1}`)}, event.ToolCall{Args: []byte(`{"a":2}`)}},
		{event.PolicyDecision{Decision: event.DecisionAllow}, event.PolicyDecision{Decision: event.DecisionDeny}},
		{event.ToolApprovalResolved{Kind: event.ApprovalRejected, Reason: "no"}, event.ToolApprovalResolved{Kind: event.ApprovalRejected, Reason: "never"}},
		{event.HookResult{Decision: event.HookBlock}, event.HookResult{Decision: event.HookAsk}},
		{event.ToolResult{Output: "done"}, event.ToolResult{Output: "failed"}},
		{event.CommandFinished{Output: "done"}, event.CommandFinished{Output: "failed"}},
		{event.Iteration{Output: "a"}, event.Iteration{Output: "b"}},
		{event.MessageSent{Text: "a"}, event.MessageSent{Text: "b"}},
		{event.MessageDropped{Reason: event.DropMailboxFull}, event.MessageDropped{Reason: event.DropUnknownStep}},
		{event.HistoryCompressed{Dropped: 1}, event.HistoryCompressed{Dropped: 2}},
		{event.RunTerminatedBy{Reason: event.ReasonStuck}, event.RunTerminatedBy{Reason: event.ReasonCancelled}},
		{event.RunCompleted{Outcome: event.Outcome{FinalOutput: "a"}}, event.RunCompleted{Outcome: event.Outcome{FinalOutput: "b"}}},
	} {
		if cmp.Equal(event.Decided(pair[0]), event.Decided(pair[1])) {
			t.Errorf("%s: %+v is taken for %+v", pair[0].EventType(), pair[0], pair[1])
		}
	}
}

func TestAnEventIsNotChangedByLookingAtWhatItDecided(t *testing.T) {
	failed := event.RunCompleted{Outcome: event.Outcome{Error: &event.Failure{RequestID: "a"}}}
	event.Decided(failed)
	if failed.Outcome.Error.RequestID != "a" {
		t.Error("the failure lost the id of its request")
	}
}
