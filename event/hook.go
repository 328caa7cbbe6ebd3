package event

import "encoding/json"

// HookStage is the moment of a run at which the owner's hooks run.
type HookStage string

// The stages, in the order of a run's life.
const (
	// HookBeforeRun: before the first cycle. A gate may refuse the run.
	HookBeforeRun HookStage = "before_run"
	// HookBeforeTool: a call is known and its arguments fit, and policy has
	// not judged it yet.
	HookBeforeTool HookStage = "before_tool"
	// HookAfterTool: a call that ran has its result, and the model has not
	// seen it yet.
	HookAfterTool HookStage = "after_tool"
	// HookBeforeCompaction: the conversation is about to become shorter.
	HookBeforeCompaction HookStage = "before_compaction"
	// HookAfterCompaction: it has become shorter.
	HookAfterCompaction HookStage = "after_compaction"
	// HookAfterRun: it is decided how the run ends.
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
	// HookBlock: the call does not run, its result is withheld, the run does
	// not begin, or the conversation is not shortened now.
	HookBlock HookDecision = "block"
)

// HookResult is the result of a hook. A fold reads it and never runs the hook
// again.
type HookResult struct {
	CallID   string       `json:"callId,omitempty"`
	Hook     string       `json:"hook"`
	Stage    HookStage    `json:"stage"`
	Decision HookDecision `json:"decision"`
	Reason   string       `json:"reason,omitempty"`
	// Args replace the arguments that the hook was given.
	Args json.RawMessage `json:"args,omitempty"`
	// Output replaces the call's output for the model.
	Output string `json:"output,omitempty"`
	// Contains are the texts that the run's conditions look for and that stand in
	// the whole of what the hook gave, where Output is its head and tail.
	Contains []string `json:"contains,omitempty"`
	// Failed says that the hook failed: it crashed, took too long, or gave an
	// invalid answer. A gate that fails blocks; an observer changes nothing.
	Failed bool `json:"failed,omitempty"`
	// Observer says that the hook could not change anything.
	Observer bool `json:"observer,omitempty"`
	// DurationMs is how long the hook ran, without what the clock skipped.
	DurationMs int64 `json:"durationMs,omitempty"`
}

func (HookResult) EventType() Type { return TypeHookResult }
