package event

import (
	"encoding/json"

	"github.com/pawlrun/pawl/llm"
)

// Effect is the effect of repeating a tool call: the tool declares it, and recovery
// after a crash depends on it.
type Effect string

// The effect classes.
const (
	// EffectPure: no effect at all; may run again at any time.
	EffectPure Effect = "pure"
	// EffectIdempotent: running again with the same key changes nothing.
	EffectIdempotent Effect = "idempotent"
	// EffectReconcilable: the tool can find out afterwards whether it happened.
	EffectReconcilable Effect = "reconcilable"
	// EffectAtMostOnce: must never run twice; the default.
	EffectAtMostOnce Effect = "at_most_once"
)

// Access is a resource that a call touches. Keys are hierarchical, separated by "/";
// "*" means everything.
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
	// ErrorNotStarted: the program of a command could not be started.
	ErrorNotStarted ErrorType = "not_started"
	// ErrorProtected: the call changed protected paths, see [ToolResult.Changed].
	ErrorProtected ErrorType = "protected_path_changed"
	// ErrorAgent: an agent that was called did not end well.
	ErrorAgent ErrorType = "agent_error"
	// ErrorHookBlocked: a hook of the owner blocked it. ErrorHookFailed: a hook that
	// must answer did not.
	ErrorHookBlocked ErrorType = "blocked_by_hook"
	ErrorHookFailed  ErrorType = "hook_failed"
)

// Problem is why a call cannot run as requested.
type Problem struct {
	Type    ErrorType `json:"type"`
	Message string    `json:"message"`
}

// ToolCall is the model's request, with the facts that the driver resolved before
// anything judges it. Only this event stores arguments.
type ToolCall struct {
	CallID     string `json:"callId"`
	ProviderID string `json:"providerId,omitempty"`
	Tool       string `json:"tool"`
	// Args is valid JSON, or absent with the invalid text in ArgsText.
	Args     json.RawMessage `json:"args,omitempty"`
	ArgsText string          `json:"argsText,omitempty"`
	// Sent are the original arguments, if Args was converted to the form that the
	// tool's schema requires.
	Sent     json.RawMessage `json:"sent,omitempty"`
	Effect   Effect          `json:"effect"`
	ReadOnly bool            `json:"readOnly,omitempty"`
	// Concurrent reports that the call may run beside others.
	Concurrent bool `json:"concurrent,omitempty"`
	// Polling reports that repeating the same call is intended.
	Polling bool `json:"polling,omitempty"`
	// Agent reports that the call starts a run, and returns its final output.
	Agent  bool     `json:"agent,omitempty"`
	Access []Access `json:"access,omitempty"`
	// Labels describe what the call reads and whether it can send.
	Labels Labels `json:"labels,omitzero"`
	// Describe is a short label for people.
	Describe string `json:"describe,omitempty"`
	// EditedBy is the principal that replaced the model's arguments by these; the
	// model's are in the call's first tool_call.
	EditedBy string `json:"editedBy,omitempty"`
	// Digest identifies tool and arguments, for approvals.
	Digest  string   `json:"digest"`
	Facts   *Facts   `json:"facts,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

func (ToolCall) EventType() Type { return TypeToolCall }

// Decision is the policy's decision about a call.
type Decision string

// The decisions.
const (
	DecisionAllow   Decision = "allow"
	DecisionDeny    Decision = "deny"
	DecisionAsk     Decision = "ask"
	DecisionSandbox Decision = "sandbox"
)

// PolicyDecision is recorded before every side effect.
type PolicyDecision struct {
	CallID   string   `json:"callId"`
	Decision Decision `json:"decision"`
	Rule     string   `json:"rule"`
	Reason   string   `json:"reason,omitempty"`
	// Sandbox reports that the call, if it runs, runs in the sandbox.
	Sandbox bool   `json:"sandbox,omitempty"`
	Digest  string `json:"digest"`
	// Facts are the facts by which a command was judged; CallID is then its id, and
	// Step its step. Those of a call are in its tool_call.
	Facts *Facts `json:"facts,omitempty"`
	Step  string `json:"step,omitempty"`
}

// OfStep returns the step that the command performs.
func (d PolicyDecision) OfStep() string { return d.Step }

func (PolicyDecision) EventType() Type { return TypePolicyDecision }

// ToolStarted is the intent of a call. It is stored before the effect may begin.
type ToolStarted struct {
	CallID  string `json:"callId"`
	Attempt int    `json:"attempt"`
	// Key is the idempotency key that the tool receives.
	Key string `json:"key,omitempty"`
}

func (ToolStarted) EventType() Type { return TypeToolStarted }

// ToolAttemptFailed settles an attempt that failed in a way that another attempt may
// not: the tool or the network reported that, and the call may run again.
type ToolAttemptFailed struct {
	CallID  string `json:"callId"`
	Attempt int    `json:"attempt"`
	// Result is the call's result if no attempt follows.
	Result ToolResult `json:"result"`
	// RetryAfterMs is the wait that the other side asked for; absent if it did not.
	RetryAfterMs *int64 `json:"retryAfterMs,omitempty"`
}

func (ToolAttemptFailed) EventType() Type { return "tool.attempt_failed" }

// ToolRetrying announces the next attempt at a call, before the wait.
type ToolRetrying struct {
	CallID  string `json:"callId"`
	Attempt int    `json:"attempt"`
	DelayMs int64  `json:"delayMs"`
}

func (ToolRetrying) EventType() Type { return "tool.retrying" }

// ToolResult is the one settlement of a call.
type ToolResult struct {
	CallID    string    `json:"callId"`
	Tool      string    `json:"tool"`
	Output    string    `json:"output"`
	IsError   bool      `json:"isError"`
	ErrorType ErrorType `json:"errorType,omitempty"`
	ExitCode  *int      `json:"exitCode,omitempty"`
	// Limit names the budget setting that prevented the call.
	Limit     string `json:"limit,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
	// Blob is the digest of the whole output if Output is its head and tail. The
	// journal stores it once, and the model may read it in pages.
	Blob string `json:"blob,omitempty"`
	// Contains lists the texts that the run's conditions look for and that occur in the
	// whole output, if Output is its head and tail.
	Contains []string    `json:"contains,omitempty"`
	Media    []llm.Media `json:"media,omitempty"`
	// Tools names the deferred tools that a search found.
	Tools []string `json:"tools,omitempty"`
	// Untrusted and Private are the labels of the result; the run's taint follows from
	// them.
	Untrusted bool `json:"untrusted,omitempty"`
	Private   bool `json:"private,omitempty"`
	EndsRun   bool `json:"endsRun,omitempty"`
	// DurationMs is the duration of the attempt, without time that the clock skipped.
	DurationMs int64 `json:"durationMs,omitempty"`
	// Retryable reports that another attempt might have succeeded.
	Retryable bool `json:"retryable,omitempty"`
	// Pin names a piece of the work's state that the result contains.
	Pin string `json:"pin,omitempty"`
	// Tree identifies the content of the workspace after a call that may have changed
	// it; it is empty if unknown.
	Tree string `json:"tree,omitempty"`
	// Reached are the machines that the call requested, if a list of hosts limits them.
	Reached []Reach `json:"reached,omitempty"`
	// Changed are the protected paths that the call changed without a decision, in a
	// sandbox that cannot prevent it. At most a hundred are listed separately.
	Changed []Change `json:"changed,omitempty"`
	// Files are the files whose content the run knows since this call.
	Files []FileSeen `json:"files,omitempty"`
	// Raw is the digest of a command's original output, if Output is what a terminal
	// would show.
	Raw string `json:"raw,omitempty"`
	// Structured is the digest of the structured content (JSON) that an MCP server
	// returned beside its text.
	Structured string `json:"structured,omitempty"`
}

// FileSeen is the content of a file that a run has read or written whole. The newest
// one for a path counts.
type FileSeen struct {
	// Path is relative to the workspace and separated by slashes.
	Path string `json:"path"`
	// Digest is the first half of the content's SHA-256, in hex.
	Digest string `json:"digest"`
}

// FilesSeen lists the files whose content a run knows since an event.
func FilesSeen(d Data) []FileSeen {
	switch d := d.(type) {
	case RunStarted:
		if d.From != nil {
			return d.From.Files
		}
	case ToolResult:
		return d.Files
	}
	return nil
}

func (ToolResult) EventType() Type { return TypeToolResult }

// Change is a protected path that a call changed. A directory that was created or
// deleted is one change.
type Change struct {
	// Path is relative to the workspace.
	Path string `json:"path"`
	// Undone reports that the path is again as it was before the call.
	Undone bool `json:"undone,omitempty"`
	// Kept is where the undone version is stored on this machine, because someone
	// else may have made the change while the call ran.
	Kept string `json:"kept,omitempty"`
}

// Reach is a machine that a call requested.
type Reach struct {
	Host string `json:"host"`
	Port int    `json:"port,omitempty"`
	// Denied is why the host was refused; absent if it was not.
	Denied string `json:"denied,omitempty"`
	Count  int    `json:"count"`
}

// CallAsked is a question about a call.
type CallAsked struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args,omitempty"`
	Runs []RunFile       `json:"runs,omitempty"`
}

// Voids returns the call, which is judged again.
func (d PolicyDecision) Voids() string { return d.CallID }

// Voids returns the call, which has begun.
func (d ToolStarted) Voids() string { return d.CallID }

// Voids returns the call, which has ended.
func (d ToolResult) Voids() string { return d.CallID }
