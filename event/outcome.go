package event

import (
	"encoding/json"

	"github.com/pawlrun/pawl/llm"
)

// Reason is why a run ended, from a closed list. A budget's reason is
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
	ReasonJudgeUnavailable Reason = "judge_unavailable"
	ReasonStepFailed       Reason = "step_failed"
	ReasonConditionError   Reason = "condition_error"
	ReasonMaxDepth         Reason = "max_depth"
	ReasonMaxIterations    Reason = "maxIterations"
	ReasonIterationFailed  Reason = "iteration_failed"
	ReasonImpossible       Reason = "impossible"
	ReasonCancelled        Reason = "cancelled"
	ReasonInternal         Reason = "internal"
)

// BudgetReason is the reason of a stop by the named budget setting, for
// example "budget:usd_per_run".
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

// Outcome is how a run ended. OK is policy (what the caller wants to count as
// well), Completed is fact (a goal signal fired).
type Outcome struct {
	Status    Status `json:"status"`
	Reason    Reason `json:"reason"`
	OK        bool   `json:"ok"`
	Completed bool   `json:"completed"`
	// Limit names the setting that stopped the run, where one did.
	Limit string `json:"limit,omitempty"`
	// AtLeast is the value of that limit with which the call that was refused would
	// have been made, where that is known.
	AtLeast float64 `json:"atLeast,omitempty"`
	// LimitRun is the run above whose limit it is; absent if it is the run's own or,
	// by the kind parent, that of the run that started this one.
	LimitRun string `json:"limitRun,omitempty"`
	// Index and Kind say which termination condition matched.
	Index *int     `json:"index,omitempty"`
	Kind  string   `json:"kind,omitempty"`
	Error *Failure `json:"error,omitempty"`
	// Step is the step of a workflow that the reason is about.
	Step string `json:"step,omitempty"`
	// AtIteration is the iteration of a loop that the reason is about, from 1, and
	// Iterations how many there were.
	AtIteration int `json:"iteration,omitempty"`
	Iterations  int `json:"iterations,omitempty"`
	// Steps are how the top-level steps of a workflow ended.
	Steps *StepCounts `json:"steps,omitempty"`
	// Result is what the run gave by its result tool, as JSON.
	Result json.RawMessage `json:"result,omitempty"`
	// FinalOutput is the run's result; LastOutput is always the last text
	// the model gave, whole. A stored event leaves it out where it is the final output.
	FinalOutput    string    `json:"final_output"`
	LastOutput     string    `json:"last_output"`
	NextSafeAction string    `json:"next_safe_action,omitempty"`
	Cycles         int       `json:"cycles"`
	Usage          llm.Usage `json:"usage"`
	// Cost is absent when no model was called.
	Cost *llm.Cost `json:"cost,omitempty"`
}

// StepCounts are how many steps ended in which way.
type StepCounts struct {
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
	Cancelled int `json:"cancelled"`
}

// Failure is a structured error.
type Failure struct {
	// Class is an [llm.Class] for a model's error, else a short word.
	Class     string `json:"class"`
	Message   string `json:"message"`
	Status    int    `json:"status,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	// Limit is the limit of a workflow, or of a run above it, that a step of it came
	// upon, and LimitRun the run above whose limit it is.
	Limit    string `json:"limit,omitempty"`
	LimitRun string `json:"limitRun,omitempty"`
}

// abridgedOutcome is an outcome as an event keeps it whose last output is the final
// one: the text stands there once.
type abridgedOutcome struct {
	Outcome
	LastOutput *string `json:"last_output,omitempty"`
}

// abridge reports whether an outcome can be kept so.
func (o Outcome) abridge() (abridgedOutcome, bool) {
	return abridgedOutcome{Outcome: o}, o.FinalOutput != "" && o.LastOutput == o.FinalOutput
}

// untoldOutcome is an outcome as an event keeps it whose texts another event has.
type untoldOutcome struct {
	Outcome
	FinalOutput *string `json:"final_output,omitempty"`
	LastOutput  *string `json:"last_output,omitempty"`
}

// whole is the outcome of which an event was read.
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
