package event

import "github.com/pawlrun/pawl/llm"

// Reason is why a run ended: the closed list of PRODUCT 5. A budget's reason
// is [BudgetReason] of its setting.
type Reason string

// The reasons.
const (
	ReasonFinalAnswer      Reason = "final_answer"
	ReasonConditionMet     Reason = "condition_met"
	ReasonMaxCycles        Reason = "maxCycles"
	ReasonNoAnswerOrCall   Reason = "no_answer_or_call"
	ReasonRejected         Reason = "rejected"
	ReasonRepeatedFailure  Reason = "repeated_failure"
	ReasonStuck            Reason = "stuck"
	ReasonPolicyDenied     Reason = "policy_denied"
	ReasonToolUnavailable  Reason = "tool_unavailable"
	ReasonModelError       Reason = "model_error"
	ReasonTruncated        Reason = "truncated"
	ReasonEmptyResponse    Reason = "empty_response"
	ReasonRefused          Reason = "refused"
	ReasonJudgeUnavailable Reason = "judge_unavailable"
	ReasonCancelled        Reason = "cancelled"
	ReasonInternal         Reason = "internal"
)

// BudgetReason is the reason of a stop by the named budget setting, for
// example "budget:usd_per_run".
func BudgetReason(setting string) Reason { return Reason("budget:" + setting) }

// Status is the coarse class of an outcome.
type Status string

// The statuses. A limit is neither a success nor a failure: it is stopped.
const (
	StatusCompleted Status = "completed"
	StatusStopped   Status = "stopped"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
)

// Outcome is how a run ended. OK is policy (what the caller wants to count as
// well), Completed is fact (a goal signal fired).
type Outcome struct {
	Status    Status `json:"status"`
	Reason    Reason `json:"reason"`
	OK        bool   `json:"ok"`
	Completed bool   `json:"completed"`
	// Limit names the setting that stopped the run, where one did.
	Limit string `json:"limit,omitempty"`
	// Index and Kind say which termination condition matched.
	Index *int     `json:"index,omitempty"`
	Kind  string   `json:"kind,omitempty"`
	Error *Failure `json:"error,omitempty"`
	// FinalOutput is the run's result; LastOutput is always the last text
	// the model gave, whole.
	FinalOutput    string    `json:"final_output"`
	LastOutput     string    `json:"last_output"`
	NextSafeAction string    `json:"next_safe_action,omitempty"`
	Cycles         int       `json:"cycles"`
	Usage          llm.Usage `json:"usage"`
	// Cost is absent when no model was called (ALF-27).
	Cost *llm.Cost `json:"cost,omitempty"`
}

// Failure is a structured error.
type Failure struct {
	// Class is an [llm.Class] for a model's error, else a short word.
	Class     string `json:"class"`
	Message   string `json:"message"`
	Status    int    `json:"status,omitempty"`
	RequestID string `json:"requestId,omitempty"`
}
