package event

import (
	"encoding/json"

	"github.com/pawlrun/pawl/llm"
)

// Reason is why a run ended, from a closed list. The reason of a budget limit is
// [BudgetReason] of its setting.
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
	ReasonTenantBudget     Reason = "tenant-budget-exhausted"
	ReasonJudgeUnavailable Reason = "judge_unavailable"
	ReasonStepFailed       Reason = "step_failed"
	ReasonConditionError   Reason = "condition_error"
	ReasonMaxDepth         Reason = "max_depth"
	ReasonMaxIterations    Reason = "maxIterations"
	ReasonIterationFailed  Reason = "iteration_failed"
	ReasonImpossible       Reason = "impossible"
	ReasonNoWorkspace      Reason = "workspace_unavailable"
	ReasonCancelled        Reason = "cancelled"
	ReasonInternal         Reason = "internal"
)

// BudgetReason returns the reason of a stop by a budget setting, for example
// "budget:usd_per_run".
func BudgetReason(setting string) Reason { return Reason("budget:" + setting) }

// Status is the class of an outcome.
type Status string

// The statuses. A run that a limit stopped is neither a success nor a failure.
const (
	StatusCompleted Status = "completed"
	StatusStopped   Status = "stopped"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
)

// Outcome is how a run ended. OK reports whether the caller counts it as a success,
// Completed whether a goal was reached.
type Outcome struct {
	Status    Status `json:"status"`
	Reason    Reason `json:"reason"`
	OK        bool   `json:"ok"`
	Completed bool   `json:"completed"`
	// Limit names the setting that stopped the run, if one did.
	Limit string `json:"limit,omitempty"`
	// AtLeast is the lowest value of that limit with which the refused call would have
	// been made, if known.
	AtLeast float64 `json:"atLeast,omitempty"`
	// LimitRun is the ancestor that has the limit; absent if it is the run itself or,
	// with the kind parent, the parent.
	LimitRun string `json:"limitRun,omitempty"`
	// Index and Kind identify the termination condition that matched.
	Index *int     `json:"index,omitempty"`
	Kind  string   `json:"kind,omitempty"`
	Error *Failure `json:"error,omitempty"`
	// Step is the step of a workflow that the reason concerns.
	Step string `json:"step,omitempty"`
	// AtIteration is the iteration of a loop that the reason concerns, from 1, and
	// Iterations the number of iterations.
	AtIteration int `json:"iteration,omitempty"`
	Iterations  int `json:"iterations,omitempty"`
	// Steps counts how the top-level steps of a workflow ended.
	Steps *StepCounts `json:"steps,omitempty"`
	// Result is the run's result as JSON: the arguments of its result tool's call, or the
	// answer that matched its schema.
	Result json.RawMessage `json:"result,omitempty"`
	// FinalOutput is the run's result; LastOutput is always the model's last complete
	// text. A stored event omits it if it is the final output.
	FinalOutput    string    `json:"final_output"`
	LastOutput     string    `json:"last_output"`
	NextSafeAction string    `json:"next_safe_action,omitempty"`
	Cycles         int       `json:"cycles"`
	Usage          llm.Usage `json:"usage"`
	// Cost is absent when no model was called.
	Cost *llm.Cost `json:"cost,omitempty"`
}

// StepCounts counts steps by how they ended.
type StepCounts struct {
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
	Cancelled int `json:"cancelled"`
}

// Failure is a structured error.
type Failure struct {
	// Class is an [llm.Class] for a model's error, otherwise a short word.
	Class     string `json:"class"`
	Message   string `json:"message"`
	Status    int    `json:"status,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	// Limit is the limit of a workflow, or of an ancestor, that a step reached, and
	// LimitRun that ancestor.
	Limit    string `json:"limit,omitempty"`
	LimitRun string `json:"limitRun,omitempty"`
}

// abridgedOutcome is the stored form of an outcome whose last output is the final one:
// it contains the text once.
type abridgedOutcome struct {
	Outcome
	LastOutput *string `json:"last_output,omitempty"`
}

// abridge returns that form, and reports whether it applies.
func (o Outcome) abridge() (abridgedOutcome, bool) {
	return abridgedOutcome{Outcome: o}, o.FinalOutput != "" && o.LastOutput == o.FinalOutput
}

// untoldOutcome is the stored form of an outcome whose texts another event contains.
type untoldOutcome struct {
	Outcome
	FinalOutput *string `json:"final_output,omitempty"`
	LastOutput  *string `json:"last_output,omitempty"`
}

// whole returns the outcome that was stored in this form.
func (u untoldOutcome) whole() Outcome {
	o := u.Outcome
	if u.FinalOutput != nil {
		o.FinalOutput = *u.FinalOutput
	}
	o.LastOutput = o.FinalOutput
	if u.LastOutput != nil {
		o.LastOutput = *u.LastOutput
	}
	return o
}
