package event

import "encoding/json"

// The names of the events (PRODUCT 4), in the order of a run's life.
const (
	TypeRunStarted           Type = "run.started"
	TypeRunParked            Type = "run.parked"
	TypeRunResumed           Type = "run.resumed"
	TypeRunForked            Type = "run.forked"
	TypeRunTerminatedBy      Type = "run.terminated_by"
	TypeRunCompleted         Type = "run.completed"
	TypeCancelRequested      Type = "cancel.requested"
	TypePauseRequested       Type = "pause.requested"
	TypeInputReceived        Type = "input.received"
	TypeBudgetRaised         Type = "budget.raised"
	TypeCheckpoint           Type = "checkpoint"
	TypeChildStarted         Type = "child.started"
	TypeChildParked          Type = "child.parked"
	TypeChildWaiting         Type = "child.waiting"
	TypeChildFinished        Type = "child.finished"
	TypeCycleStart           Type = "cycle.start"
	TypeModelRequested       Type = "model.requested"
	TypeModelResponse        Type = "model.response"
	TypeModelAttemptFailed   Type = "model.attempt_failed"
	TypeModelRetrying        Type = "model.retrying"
	TypeToolCall             Type = "tool_call"
	TypePolicyDecision       Type = "policy.decision"
	TypeHookResult           Type = "hook.result"
	TypeToolPendingApproval  Type = "tool.pending_approval"
	TypeToolApprovalResolved Type = "tool.approval_resolved"
	TypeToolStarted          Type = "tool.started"
	TypeToolAttemptFailed    Type = "tool.attempt_failed"
	TypeToolRetrying         Type = "tool.retrying"
	TypeToolResult           Type = "tool_result"
	TypeToolResults          Type = "tool.results"
	TypeHistoryCompressed    Type = "history.compressed"
	TypeAnswerChecked        Type = "answer.checked"
	TypeNudge                Type = "nudge"
	TypeStuck                Type = "stuck"
	TypeBudgetReserved       Type = "budget.reserved"
	TypeBudgetRefused        Type = "budget.refused"
	TypeBudgetCommitted      Type = "budget.committed"
	TypeBudgetWarning        Type = "budget.warning"
	TypeBudgetOverrun        Type = "budget.overrun"
	TypeCacheBreak           Type = "cache.break"
	TypeIteration            Type = "iteration"
	TypeProgress             Type = "progress"
	TypeReviewRequested      Type = "review.requested"
	TypeReviewResolved       Type = "review.resolved"
	TypeJudgeVerdict         Type = "judge.verdict"
	TypeStepStarted          Type = "step.started"
	TypeStepFinished         Type = "step.finished"
	TypeStepSkipped          Type = "step.skipped"
	TypeMessageSent          Type = "message.sent"
	TypeMessageDelivered     Type = "message.delivered"
	TypeMessageDropped       Type = "message.dropped"
)

// EventType is run.started.
func (RunStarted) EventType() Type { return TypeRunStarted }

// EventType is run.parked.
func (RunParked) EventType() Type { return TypeRunParked }

// EventType is run.resumed.
func (RunResumed) EventType() Type { return TypeRunResumed }

// EventType is run.forked.
func (RunForked) EventType() Type { return TypeRunForked }

// EventType is run.terminated_by.
func (RunTerminatedBy) EventType() Type { return TypeRunTerminatedBy }

// EventType is run.completed.
func (RunCompleted) EventType() Type { return TypeRunCompleted }

// EventType is cancel.requested.
func (CancelRequested) EventType() Type { return TypeCancelRequested }

// EventType is pause.requested.
func (PauseRequested) EventType() Type { return TypePauseRequested }

// EventType is input.received.
func (InputReceived) EventType() Type { return TypeInputReceived }

// EventType is budget.raised.
func (BudgetRaised) EventType() Type { return TypeBudgetRaised }

// EventType is checkpoint.
func (Checkpoint) EventType() Type { return TypeCheckpoint }

// EventType is child.started.
func (ChildStarted) EventType() Type { return TypeChildStarted }

// EventType is child.parked.
func (ChildParked) EventType() Type { return TypeChildParked }

// EventType is child.waiting.
func (ChildWaiting) EventType() Type { return TypeChildWaiting }

// EventType is child.finished.
func (ChildFinished) EventType() Type { return TypeChildFinished }

// EventType is cycle.start.
func (CycleStart) EventType() Type { return TypeCycleStart }

// EventType is model.requested.
func (ModelRequested) EventType() Type { return TypeModelRequested }

// EventType is model.response.
func (ModelResponse) EventType() Type { return TypeModelResponse }

// EventType is model.attempt_failed.
func (ModelAttemptFailed) EventType() Type { return TypeModelAttemptFailed }

// EventType is model.retrying.
func (ModelRetrying) EventType() Type { return TypeModelRetrying }

// EventType is tool_call.
func (ToolCall) EventType() Type { return TypeToolCall }

// EventType is policy.decision.
func (PolicyDecision) EventType() Type { return TypePolicyDecision }

// EventType is hook.result.
func (HookResult) EventType() Type { return TypeHookResult }

// EventType is tool.pending_approval.
func (ToolPendingApproval) EventType() Type { return TypeToolPendingApproval }

// EventType is tool.approval_resolved.
func (ToolApprovalResolved) EventType() Type { return TypeToolApprovalResolved }

// EventType is tool.started.
func (ToolStarted) EventType() Type { return TypeToolStarted }

// EventType is tool.attempt_failed.
func (ToolAttemptFailed) EventType() Type { return TypeToolAttemptFailed }

// EventType is tool.retrying.
func (ToolRetrying) EventType() Type { return TypeToolRetrying }

// EventType is tool_result.
func (ToolResult) EventType() Type { return TypeToolResult }

// EventType is tool.results.
func (ToolResults) EventType() Type { return TypeToolResults }

// EventType is history.compressed.
func (HistoryCompressed) EventType() Type { return TypeHistoryCompressed }

// EventType is answer.checked.
func (AnswerChecked) EventType() Type { return TypeAnswerChecked }

// EventType is nudge.
func (Nudge) EventType() Type { return TypeNudge }

// EventType is stuck.
func (Stuck) EventType() Type { return TypeStuck }

// EventType is budget.reserved.
func (BudgetReserved) EventType() Type { return TypeBudgetReserved }

// EventType is budget.refused.
func (BudgetRefused) EventType() Type { return TypeBudgetRefused }

// EventType is budget.committed.
func (BudgetCommitted) EventType() Type { return TypeBudgetCommitted }

// EventType is budget.warning.
func (BudgetWarning) EventType() Type { return TypeBudgetWarning }

// EventType is budget.overrun.
func (BudgetOverrun) EventType() Type { return TypeBudgetOverrun }

// EventType is cache.break.
func (CacheBreak) EventType() Type { return TypeCacheBreak }

// EventType is iteration.
func (Iteration) EventType() Type { return TypeIteration }

// EventType is progress.
func (Progress) EventType() Type { return TypeProgress }

// EventType is review.requested.
func (ReviewRequested) EventType() Type { return TypeReviewRequested }

// EventType is review.resolved.
func (ReviewResolved) EventType() Type { return TypeReviewResolved }

// EventType is judge.verdict.
func (JudgeVerdict) EventType() Type { return TypeJudgeVerdict }

// EventType is step.started.
func (StepStarted) EventType() Type { return TypeStepStarted }

// EventType is step.finished.
func (StepFinished) EventType() Type { return TypeStepFinished }

// EventType is step.skipped.
func (StepSkipped) EventType() Type { return TypeStepSkipped }

// EventType is message.sent.
func (MessageSent) EventType() Type { return TypeMessageSent }

// EventType is message.delivered.
func (MessageDelivered) EventType() Type { return TypeMessageDelivered }

// EventType is message.dropped.
func (MessageDropped) EventType() Type { return TypeMessageDropped }

func decodeData(t Type, raw json.RawMessage) (Data, error) {
	switch t {
	case TypeRunStarted:
		return decodeAs[RunStarted](raw)
	case TypeRunParked:
		return decodeAs[RunParked](raw)
	case TypeRunResumed:
		return decodeAs[RunResumed](raw)
	case TypeRunForked:
		return decodeAs[RunForked](raw)
	case TypeRunTerminatedBy:
		return decodeAs[RunTerminatedBy](raw)
	case TypeRunCompleted:
		return decodeAs[RunCompleted](raw)
	case TypeCancelRequested:
		return decodeAs[CancelRequested](raw)
	case TypePauseRequested:
		return decodeAs[PauseRequested](raw)
	case TypeInputReceived:
		return decodeAs[InputReceived](raw)
	case TypeBudgetRaised:
		return decodeAs[BudgetRaised](raw)
	case TypeCheckpoint:
		return decodeAs[Checkpoint](raw)
	case TypeChildStarted:
		return decodeAs[ChildStarted](raw)
	case TypeChildParked:
		return decodeAs[ChildParked](raw)
	case TypeChildWaiting:
		return decodeAs[ChildWaiting](raw)
	case TypeChildFinished:
		return decodeAs[ChildFinished](raw)
	case TypeCycleStart:
		return decodeAs[CycleStart](raw)
	case TypeModelRequested:
		return decodeAs[ModelRequested](raw)
	case TypeModelResponse:
		return decodeAs[ModelResponse](raw)
	case TypeModelAttemptFailed:
		return decodeAs[ModelAttemptFailed](raw)
	case TypeModelRetrying:
		return decodeAs[ModelRetrying](raw)
	case TypeToolCall:
		return decodeAs[ToolCall](raw)
	case TypePolicyDecision:
		return decodeAs[PolicyDecision](raw)
	case TypeHookResult:
		return decodeAs[HookResult](raw)
	case TypeToolPendingApproval:
		return decodeAs[ToolPendingApproval](raw)
	case TypeToolApprovalResolved:
		return decodeAs[ToolApprovalResolved](raw)
	case TypeToolStarted:
		return decodeAs[ToolStarted](raw)
	case TypeToolAttemptFailed:
		return decodeAs[ToolAttemptFailed](raw)
	case TypeToolRetrying:
		return decodeAs[ToolRetrying](raw)
	case TypeToolResult:
		return decodeAs[ToolResult](raw)
	case TypeToolResults:
		return decodeAs[ToolResults](raw)
	case TypeHistoryCompressed:
		return decodeAs[HistoryCompressed](raw)
	case TypeAnswerChecked:
		return decodeAs[AnswerChecked](raw)
	case TypeNudge:
		return decodeAs[Nudge](raw)
	case TypeStuck:
		return decodeAs[Stuck](raw)
	case TypeBudgetReserved:
		return decodeAs[BudgetReserved](raw)
	case TypeBudgetRefused:
		return decodeAs[BudgetRefused](raw)
	case TypeBudgetCommitted:
		return decodeAs[BudgetCommitted](raw)
	case TypeBudgetWarning:
		return decodeAs[BudgetWarning](raw)
	case TypeBudgetOverrun:
		return decodeAs[BudgetOverrun](raw)
	case TypeCacheBreak:
		return decodeAs[CacheBreak](raw)
	case TypeIteration:
		return decodeAs[Iteration](raw)
	case TypeProgress:
		return decodeAs[Progress](raw)
	case TypeReviewRequested:
		return decodeAs[ReviewRequested](raw)
	case TypeReviewResolved:
		return decodeAs[ReviewResolved](raw)
	case TypeJudgeVerdict:
		return decodeAs[JudgeVerdict](raw)
	case TypeStepStarted:
		return decodeAs[StepStarted](raw)
	case TypeStepFinished:
		return decodeAs[StepFinished](raw)
	case TypeStepSkipped:
		return decodeAs[StepSkipped](raw)
	case TypeMessageSent:
		return decodeAs[MessageSent](raw)
	case TypeMessageDelivered:
		return decodeAs[MessageDelivered](raw)
	case TypeMessageDropped:
		return decodeAs[MessageDropped](raw)
	}
	return Unknown{Type: t, Raw: raw}, nil
}

func decodeAs[T Data](raw json.RawMessage) (Data, error) {
	var v T
	err := json.Unmarshal(raw, &v)
	return v, err
}

// All returns a zero payload of every kind, for documentation and tests.
func All() []Data {
	return []Data{
		RunStarted{},
		RunParked{},
		RunResumed{},
		RunForked{},
		RunTerminatedBy{},
		RunCompleted{},
		CancelRequested{},
		PauseRequested{},
		InputReceived{},
		BudgetRaised{},
		Checkpoint{},
		ChildStarted{},
		ChildParked{},
		ChildWaiting{},
		ChildFinished{},
		CycleStart{},
		ModelRequested{},
		ModelResponse{},
		ModelAttemptFailed{},
		ModelRetrying{},
		ToolCall{},
		PolicyDecision{},
		HookResult{},
		ToolPendingApproval{},
		ToolApprovalResolved{},
		ToolStarted{},
		ToolAttemptFailed{},
		ToolRetrying{},
		ToolResult{},
		ToolResults{},
		HistoryCompressed{},
		AnswerChecked{},
		Nudge{},
		Stuck{},
		BudgetReserved{},
		BudgetRefused{},
		BudgetCommitted{},
		BudgetWarning{},
		BudgetOverrun{},
		CacheBreak{},
		Iteration{},
		Progress{},
		ReviewRequested{},
		ReviewResolved{},
		JudgeVerdict{},
		StepStarted{},
		StepFinished{},
		StepSkipped{},
		MessageSent{},
		MessageDelivered{},
		MessageDropped{},
	}
}
