package event

import "encoding/json"

// HookStage is the stage of a run at which the owner's hooks run.
type HookStage string

// The stages, in the order of a run.
const (
	// HookBeforeRun: before the first cycle. A gate may refuse the run.
	HookBeforeRun HookStage = "before_run"
	// HookBeforeTool: a call has valid arguments and is not judged yet.
	HookBeforeTool HookStage = "before_tool"
	// HookAfterTool: a call that ran has its result, and the model has not seen it yet.
	HookAfterTool HookStage = "after_tool"
	// HookBeforeCompaction: the conversation is about to be shortened.
	HookBeforeCompaction HookStage = "before_compaction"
	// HookAfterCompaction: the conversation was shortened.
	HookAfterCompaction HookStage = "after_compaction"
	// HookAfterRun: the run's outcome is decided.
	HookAfterRun HookStage = "after_run"
)

// HookDecision is the decision of a hook.
type HookDecision string

// The decisions. None of them permits anything that policy does not.
const (
	HookContinue HookDecision = "continue"
	// HookRewrite: other arguments before a tool, another output after it.
	HookRewrite HookDecision = "rewrite"
	// HookAsk: a person decides, unless policy denies.
	HookAsk HookDecision = "ask"
	// HookBlock: the call does not run, its result is withheld, the run does not begin,
	// or the conversation is not shortened now.
	HookBlock HookDecision = "block"
)

// HookResult is the result of a hook. A fold reads it and never runs the hook again.
type HookResult struct {
	CallID   string       `json:"callId,omitempty"`
	Hook     string       `json:"hook"`
	Stage    HookStage    `json:"stage"`
	Decision HookDecision `json:"decision"`
	Reason   string       `json:"reason,omitempty"`
	// Args replace the arguments that the hook received.
	Args json.RawMessage `json:"args,omitempty"`
	// Output replaces the call's output for the model.
	Output string `json:"output,omitempty"`
	// Contains lists the texts that the run's conditions look for and that occur in the
	// hook's whole output, if Output is its head and tail.
	Contains []string `json:"contains,omitempty"`
	// Failed reports that the hook failed: it crashed, took too long, or returned an
	// invalid answer. A gate that fails blocks; an observer changes nothing.
	Failed bool `json:"failed,omitempty"`
	// Observer reports that the hook cannot change anything.
	Observer bool `json:"observer,omitempty"`
	// DurationMs is the duration of the hook, without time that the clock skipped.
	DurationMs int64 `json:"durationMs,omitempty"`
}

func (HookResult) EventType() Type { return TypeHookResult }
