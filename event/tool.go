package event

import (
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// Effect is what repeating a tool call would do: the tool declares it, and
// recovery acts on it (FIELD F4).
type Effect string

// The effect classes.
const (
	// EffectPure: no effect at all; may run again at any time.
	EffectPure Effect = "pure"
	// EffectIdempotent: running again with the same key changes nothing.
	EffectIdempotent Effect = "idempotent"
	// EffectReconcilable: the tool can tell afterwards whether it happened.
	EffectReconcilable Effect = "reconcilable"
	// EffectAtMostOnce: must never run twice; the default.
	EffectAtMostOnce Effect = "at_most_once"
)

// Access is one resource that a call touches. Keys are hierarchical by "/";
// "*" stands for everything.
type Access struct {
	Key   string `json:"key"`
	Write bool   `json:"write,omitempty"`
}

// ErrorType is the machine-readable kind of a failed result.
type ErrorType string

// The error types of results.
const (
	ErrorUnknownTool  ErrorType = "unknown_tool"
	ErrorInvalidArgs  ErrorType = "invalid_arguments"
	ErrorTool         ErrorType = "tool_error"
	ErrorPanic        ErrorType = "panic"
	ErrorTimeout      ErrorType = "timeout"
	ErrorCancelled    ErrorType = "cancelled"
	ErrorDenied       ErrorType = "permission_denied"
	ErrorRejected     ErrorType = "rejected"
	ErrorExpired      ErrorType = "approval_expired"
	ErrorTruncated    ErrorType = "truncated"
	ErrorInDoubt      ErrorType = "in_doubt"
	ErrorBudget       ErrorType = "budget_exceeded"
	ErrorBlocked      ErrorType = "repeated_call_blocked"
	ErrorNotFound     ErrorType = "not_found"
	ErrorConflict     ErrorType = "conflict"
	ErrorOutsidePaths ErrorType = "outside_workspace"
	ErrorWorkspace    ErrorType = "workspace_unavailable"
	ErrorUnavailable  ErrorType = "tool_unavailable"
	// ErrorAgent: an agent that was called did not end well.
	ErrorAgent ErrorType = "agent_error"
	// ErrorHookBlocked: a hook of the owner's said no. ErrorHookFailed: one
	// that must be heard could not be (FIELD F28).
	ErrorHookBlocked ErrorType = "blocked_by_hook"
	ErrorHookFailed  ErrorType = "hook_failed"
)

// Problem is why a call cannot run as asked.
type Problem struct {
	Type    ErrorType `json:"type"`
	Message string    `json:"message"`
}

// ToolCall is the model's request, with what the driver resolved about it
// before anything judges it. It is the only place where arguments are stored.
type ToolCall struct {
	CallID     string `json:"callId"`
	ProviderID string `json:"providerId,omitempty"`
	Tool       string `json:"tool"`
	// Args is valid JSON, or absent with the fragment in ArgsText.
	Args     json.RawMessage `json:"args,omitempty"`
	ArgsText string          `json:"argsText,omitempty"`
	Effect   Effect          `json:"effect"`
	ReadOnly bool            `json:"readOnly,omitempty"`
	// Concurrent says that the call may run beside others (ALF-56).
	Concurrent bool `json:"concurrent,omitempty"`
	// Polling says that the same call is meant to be made again and again.
	Polling bool `json:"polling,omitempty"`
	// Agent says that the call starts a run of its own, and gives what that ends
	// with.
	Agent  bool     `json:"agent,omitempty"`
	Access []Access `json:"access,omitempty"`
	// Labels say what text the call brings in and what it can carry out.
	Labels Labels `json:"labels,omitzero"`
	// Describe is a short label for people (ALF-18).
	Describe string `json:"describe,omitempty"`
	// EditedBy is who put these arguments in the place of the model's, which
	// stand in the call's first tool_call.
	EditedBy string `json:"editedBy,omitempty"`
	// Digest identifies tool and arguments, for approvals.
	Digest  string   `json:"digest"`
	Facts   *Facts   `json:"facts,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

// Decision is what policy says of a call.
type Decision string

// The decisions.
const (
	DecisionAllow   Decision = "allow"
	DecisionDeny    Decision = "deny"
	DecisionAsk     Decision = "ask"
	DecisionSandbox Decision = "sandbox"
)

// PolicyDecision is recorded before every side effect (HAR-5).
type PolicyDecision struct {
	CallID   string   `json:"callId"`
	Decision Decision `json:"decision"`
	Rule     string   `json:"rule"`
	Reason   string   `json:"reason,omitempty"`
	// Sandbox says that the call, if it runs, runs in the sandbox.
	Sandbox bool   `json:"sandbox,omitempty"`
	Digest  string `json:"digest"`
}

// ToolPendingApproval opens an approval, bound to the exact arguments and to
// the policy that asks.
type ToolPendingApproval struct {
	CallID string          `json:"callId"`
	Tool   string          `json:"tool"`
	Args   json.RawMessage `json:"args,omitempty"`
	Digest string          `json:"digest"`
	Reason string          `json:"reason,omitempty"`
	// Rule asked, and Risk is what harm the call can do.
	Rule string `json:"rule,omitempty"`
	Risk Risk   `json:"risk,omitempty"`
	// Policy is the version of the policy that asks. A decision under another
	// one is none.
	Policy string `json:"policy,omitempty"`
	// ExpiresAt is when a decision comes too late; nil for never.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
}

// ApprovalKind is how an approval was decided.
type ApprovalKind string

// The kinds of decisions.
const (
	ApprovalApproved ApprovalKind = "approved"
	ApprovalRejected ApprovalKind = "rejected"
	ApprovalExpired  ApprovalKind = "expired"
	// ApprovalEdited: the call may run with other arguments, once those have
	// been validated, resolved and judged like the model's own.
	ApprovalEdited ApprovalKind = "edited"
)

// ToolApprovalResolved is somebody's decision on a pending call.
type ToolApprovalResolved struct {
	CallID string       `json:"callId"`
	Kind   ApprovalKind `json:"kind"`
	// Digest is that of the arguments that were asked about.
	Digest   string    `json:"digest"`
	Approver string    `json:"approver"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"`
	// Policy is the version of the policy under which it was decided.
	Policy string `json:"policy,omitempty"`
	// Args are the arguments in the place of the model's, where Kind is
	// [ApprovalEdited].
	Args json.RawMessage `json:"args,omitempty"`
}

// ToolStarted is the intent: stored before the effect may begin.
type ToolStarted struct {
	CallID  string `json:"callId"`
	Attempt int    `json:"attempt"`
	// Key is the idempotency key that the tool is given.
	Key string `json:"key,omitempty"`
}

// ToolAttemptFailed settles an attempt that another one may cure: the tool or
// the network said so, and the call is one that may run again.
type ToolAttemptFailed struct {
	CallID  string `json:"callId"`
	Attempt int    `json:"attempt"`
	// Result is the call's own result if no attempt follows.
	Result ToolResult `json:"result"`
	// RetryAfterMs is what the other side asked for; absent when it did not.
	RetryAfterMs *int64 `json:"retryAfterMs,omitempty"`
}

// ToolRetrying announces the next attempt at a call, before its wait.
type ToolRetrying struct {
	CallID  string `json:"callId"`
	Attempt int    `json:"attempt"`
	DelayMs int64  `json:"delayMs"`
}

// ToolResult is the one settlement of a call, on every path (HAR-3).
type ToolResult struct {
	CallID    string    `json:"callId"`
	Tool      string    `json:"tool"`
	Output    string    `json:"output"`
	IsError   bool      `json:"isError"`
	ErrorType ErrorType `json:"errorType,omitempty"`
	ExitCode  *int      `json:"exitCode,omitempty"`
	// Limit names the budget setting that kept the call from running.
	Limit     string `json:"limit,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
	// Blob is the digest of the whole output where Output is its head and
	// tail. The journal keeps it once, and the model may page through it.
	Blob string `json:"blob,omitempty"`
	// Contains are the texts that the run's conditions look for and that stand in
	// the whole output, where Output is its head and tail.
	Contains []string    `json:"contains,omitempty"`
	Media    []llm.Media `json:"media,omitempty"`
	// Tools names the deferred tools that a search found.
	Tools []string `json:"tools,omitempty"`
	// Untrusted and Private are what the result was found to be; the run's
	// taint follows from them.
	Untrusted bool `json:"untrusted,omitempty"`
	Private   bool `json:"private,omitempty"`
	EndsRun   bool `json:"endsRun,omitempty"`
	// DurationMs is how long the attempt lasted, without what the clock skipped.
	DurationMs int64 `json:"durationMs,omitempty"`
	// Retryable says that the failure was one that another attempt may cure.
	Retryable bool `json:"retryable,omitempty"`
	// Pin names a piece of the work's state that the result holds.
	Pin string `json:"pin,omitempty"`
	// Tree identifies what the workspace held after a call that may have
	// changed it; it is empty where that is not known.
	Tree string `json:"tree,omitempty"`
	// Reached are the machines that the call asked for where a list of hosts
	// bounds them.
	Reached []Reach `json:"reached,omitempty"`
}

// Reach is one machine that a call asked for.
type Reach struct {
	Host string `json:"host"`
	Port int    `json:"port,omitempty"`
	// Denied is why it was not reached; absent where nothing stood against it.
	Denied string `json:"denied,omitempty"`
	Count  int    `json:"count"`
}
