package event

import (
	"encoding/json"
	"sync"
)

// The names of events that programs use in comparisons.
const (
	TypeRunStarted           Type = "run.started"
	TypeRunPlaced            Type = "run.placed"
	TypeRunParked            Type = "run.parked"
	TypeRunResumed           Type = "run.resumed"
	TypeRunForked            Type = "run.forked"
	TypeRunTerminatedBy      Type = "run.terminated_by"
	TypeRunCompleted         Type = "run.completed"
	TypeCancelRequested      Type = "cancel.requested"
	TypePauseRequested       Type = "pause.requested"
	TypeInputReceived        Type = "input.received"
	TypeBudgetRaised         Type = "budget.raised"
	TypeChildStarted         Type = "child.started"
	TypeChildParked          Type = "child.parked"
	TypeChildWaiting         Type = "child.waiting"
	TypeChildFinished        Type = "child.finished"
	TypeCycleStart           Type = "cycle.start"
	TypeModelRequested       Type = "model.requested"
	TypeModelResponse        Type = "model.response"
	TypeModelAttemptFailed   Type = "model.attempt_failed"
	TypeToolCall             Type = "tool_call"
	TypePolicyDecision       Type = "policy.decision"
	TypeHookResult           Type = "hook.result"
	TypeToolPendingApproval  Type = "tool.pending_approval"
	TypeToolApprovalResolved Type = "tool.approval_resolved"
	TypePermissionAdded      Type = "permission.added"
	TypeToolInputRequired    Type = "tool.input_required"
	TypeToolInputResolved    Type = "tool.input_resolved"
	TypeToolTask             Type = "tool.task"
	TypeToolStarted          Type = "tool.started"
	TypeToolResult           Type = "tool_result"
	TypeToolResults          Type = "tool.results"
	TypeHistoryCompressed    Type = "history.compressed"
	TypeNudge                Type = "nudge"
	TypeBudgetReserved       Type = "budget.reserved"
	TypeBudgetRefused        Type = "budget.refused"
	TypeBudgetCommitted      Type = "budget.committed"
)

// kind is an entry of the vocabulary.
type kind struct {
	zero   Data
	decode func(json.RawMessage) (Data, error)
	// aside marks an event that says nothing about what the run did: see [Decided].
	aside bool
}

// did returns the kind of an event that records what its run did.
func did[D Data]() kind {
	var zero D
	return kind{zero: zero, decode: func(raw json.RawMessage) (Data, error) {
		var d D
		err := json.Unmarshal(raw, &d)
		return d, err
	}}
}

// aside returns the kind of an event that records how the run came to do it.
func aside[D Data]() kind {
	k := did[D]()
	k.aside = true
	return k
}

// kinds returns the vocabulary, in the order of a run. A new event needs its payload,
// which names it, and a line here.
func kinds() []kind {
	return []kind{
		did[RunStarted](),
		aside[RunPlaced](),
		aside[RunParked](),
		aside[RunResumed](),
		aside[RunForked](),
		did[RunTerminatedBy](),
		did[RunCompleted](),
		did[CancelRequested](),
		aside[PauseRequested](),
		did[InputReceived](),
		aside[BudgetRaised](),
		did[Checkpoint](),
		aside[ChildStarted](),
		aside[ChildParked](),
		aside[ChildWaiting](),
		aside[ChildFinished](),
		aside[WaitStarted](),
		aside[WaitFinished](),
		did[ConditionEvaluated](),
		aside[CommandStarted](),
		did[CommandFinished](),
		aside[CycleStart](),
		aside[ModelRequested](),
		did[ModelResponse](),
		aside[ModelAttemptFailed](),
		aside[ModelRetrying](),
		did[ToolCall](),
		did[PolicyDecision](),
		did[HookResult](),
		did[ToolPendingApproval](),
		did[ToolApprovalResolved](),
		did[PermissionAdded](),
		aside[ToolStarted](),
		aside[ToolAttemptFailed](),
		aside[ToolRetrying](),
		aside[ToolTask](),
		aside[ToolInputRequired](),
		aside[ToolInputResolved](),
		aside[ServerChanged](),
		did[ToolResult](),
		did[ToolResults](),
		did[HistoryCompressed](),
		did[AnswerChecked](),
		did[Nudge](),
		did[Stuck](),
		aside[BudgetReserved](),
		aside[BudgetRefused](),
		aside[BudgetCommitted](),
		aside[BudgetWarning](),
		aside[BudgetOverrun](),
		aside[CacheBreak](),
		did[Iteration](),
		did[Progress](),
		did[ReviewRequested](),
		did[ReviewResolved](),
		did[GoalBlocked](),
		did[GoalUnanswered](),
		did[JudgeVerdict](),
		aside[StepStarted](),
		did[StepFinished](),
		did[StepSkipped](),
		did[MessageSent](),
		did[MessageDelivered](),
		did[MessageDropped](),
	}
}

var byName = sync.OnceValue(func() map[Type]kind {
	all := map[Type]kind{}
	for _, k := range kinds() {
		all[k.zero.EventType()] = k
	}
	return all
})

// All returns a zero payload of every kind, for documentation and tests.
func All() []Data {
	var all []Data
	for _, k := range kinds() {
		all = append(all, k.zero)
	}
	return all
}
