package event

import "github.com/pawlrun/pawl/llm"

// CycleStart starts a cycle: one model call and the tool calls in its answer. Cycles
// are numbered from 1.
type CycleStart struct {
	Cycle     int `json:"cycle"`
	MaxCycles int `json:"maxCycles"`
}

func (CycleStart) EventType() Type { return TypeCycleStart }

// Purpose is the purpose of a model call that does not answer a cycle.
type Purpose string

// PurposeSummary is a call that writes a summary for a compaction. Its answer
// is recorded in history.compressed and is not an answer of the run.
const PurposeSummary Purpose = "summary"

// ModelRequested is the intent of one attempt at a model call.
type ModelRequested struct {
	Attempt int     `json:"attempt"`
	Model   string  `json:"model"`
	Purpose Purpose `json:"purpose,omitempty"`
	// RequestDigest identifies the bytes of the request.
	RequestDigest string `json:"requestDigest,omitempty"`
	RequestBytes  int64  `json:"requestBytes,omitempty"`
	// Prompt identifies the prompt by its differences from the run's previous request;
	// absent if the provider's cache rules are unknown.
	Prompt *PromptSums `json:"prompt,omitempty"`
	// Withheld are the provider's own tools that the run has and this request omits;
	// nil if it omits none.
	Withheld *Withheld `json:"withheld,omitempty"`
}

func (ModelRequested) EventType() Type { return TypeModelRequested }

// PromptSums identifies the segments of a request that a provider may cache, by the
// changes since the run's previous request, so that a change can be detected after a
// restart too. A sum is the first four bytes of a hash, in hexadecimal.
type PromptSums struct {
	// Fixed contains the joined sums of the tools, the system text and everything
	// before the messages; absent if they are unchanged.
	Fixed string `json:"fixed,omitempty"`
	// Kept counts the leading messages that are unchanged since the previous request,
	// Messages all of them. New contains the joined sums of the messages after those,
	// up to a limit; the rest is not compared.
	Kept     int    `json:"kept"`
	Messages int    `json:"messages"`
	New      string `json:"new,omitempty"`
}

// CallRef refers to a call of a response; its arguments are in tool_call.
type CallRef struct {
	CallID string `json:"callId"`
	Tool   string `json:"tool"`
}

// ModelResponse settles a model call. The message is stored as parts; the arguments of
// its calls are in the tool_call events of the same commit, so that nothing is stored
// twice.
type ModelResponse struct {
	Cycle        int        `json:"cycle"`
	Attempt      int        `json:"attempt"`
	TextLength   int        `json:"textLength"`
	ToolCalls    []CallRef  `json:"toolCalls"`
	FinishReason llm.Finish `json:"finishReason"`
	RawFinish    string     `json:"rawFinish,omitempty"`
	Usage        llm.Usage  `json:"usage"`
	Model        string     `json:"model"`
	Cost         llm.Cost   `json:"cost"`
	Parts        Answer     `json:"parts"`
	ResponseID   string     `json:"responseId,omitempty"`
	RequestID    string     `json:"requestId,omitempty"`
	// FinishDetail is the provider's explanation, for example of a refusal.
	FinishDetail string  `json:"finishDetail,omitempty"`
	Purpose      Purpose `json:"purpose,omitempty"`
}

func (ModelResponse) EventType() Type { return TypeModelResponse }

// Answer is a response's parts. In the stored form its calls have no arguments, which
// are in the adjacent tool_call events.
type Answer llm.Parts

// MarshalJSON omits the arguments of calls.
func (a Answer) MarshalJSON() ([]byte, error) {
	parts := make(llm.Parts, len(a))
	for i, p := range a {
		if c, ok := p.(llm.ToolCall); ok {
			c.Args, c.ArgsText = nil, ""
			p = c
		}
		parts[i] = p
	}
	return parts.MarshalJSON()
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (a *Answer) UnmarshalJSON(b []byte) error { return (*llm.Parts)(a).UnmarshalJSON(b) }

// ModelAttemptFailed settles an attempt without a complete answer.
type ModelAttemptFailed struct {
	Attempt     int       `json:"attempt"`
	Model       string    `json:"model"`
	Class       llm.Class `json:"class"`
	Status      int       `json:"status,omitempty"`
	Code        string    `json:"code,omitempty"`
	Message     string    `json:"message"`
	RequestID   string    `json:"requestId,omitempty"`
	PartialText string    `json:"partialText,omitempty"`
	Usage       llm.Usage `json:"usage"`
	Cost        llm.Cost  `json:"cost"`
	// RetryAfterMs is the wait that the provider asked for; absent if it did not.
	RetryAfterMs *int64  `json:"retryAfterMs,omitempty"`
	Purpose      Purpose `json:"purpose,omitempty"`
	// Room is the provider's information about the size of the request.
	Room *llm.Room `json:"room,omitempty"`
	// Adapted reports that the next attempt sends the request in another form.
	Adapted bool `json:"adapted,omitempty"`
}

func (ModelAttemptFailed) EventType() Type { return TypeModelAttemptFailed }

// ModelRetrying announces the next attempt, before the wait.
type ModelRetrying struct {
	Attempt   int    `json:"attempt"`
	DelayMs   int64  `json:"delayMs"`
	Reason    string `json:"reason"`
	FromModel string `json:"fromModel"`
	ToModel   string `json:"toModel"`
	// Purpose is the purpose of the failed call.
	Purpose Purpose `json:"purpose,omitempty"`
}

func (ModelRetrying) EventType() Type { return "model.retrying" }

// ToolResults ends the tool phase of a cycle; the outputs are in the tool_result
// events.
type ToolResults struct {
	Cycle   int         `json:"cycle"`
	Results []ResultRef `json:"results"`
}

func (ToolResults) EventType() Type { return TypeToolResults }

// ResultRef is one line of [ToolResults], in call order.
type ResultRef struct {
	CallID  string `json:"callId"`
	Tool    string `json:"tool"`
	IsError bool   `json:"isError"`
}

// HistoryCompressed records which messages were removed from the conversation and which
// were kept. The removed messages are still in earlier events, so that they can be
// shown and the compaction can be undone.
type HistoryCompressed struct {
	Strategy string `json:"strategy"`
	// Trigger is the cause of the compaction.
	Trigger CompressTrigger `json:"trigger,omitempty"`
	// Dropped and Kept count messages. Kept includes the summary.
	Dropped int `json:"dropped"`
	Kept    int `json:"kept"`
	// TokensBefore and TokensAfter estimate the request, including system text and
	// tools.
	TokensBefore int64 `json:"tokensBefore"`
	TokensAfter  int64 `json:"tokensAfter"`
	// Cleared lists the calls whose results were replaced by a stub, Clamped those
	// whose results were shortened.
	Cleared []string        `json:"cleared,omitempty"`
	Clamped []ClampedResult `json:"clamped,omitempty"`
	// Repeated lists the results that a later result repeats, and that a stub replaced
	// for that reason.
	Repeated []RepeatedResult `json:"repeated,omitempty"`
	// Removed lists the removed messages by their indexes in the conversation before.
	Removed []MessageRange `json:"removed,omitempty"`
	// Summary is the text of the message that replaces them, SummaryAt its index in the
	// conversation after.
	Summary   string `json:"summary,omitempty"`
	SummaryAt int    `json:"summaryAt,omitempty"`
	// SummaryRole is the role of the summary: empty for the user's, "system" if the
	// owner gives it the system's authority.
	SummaryRole llm.Role `json:"summaryRole,omitempty"`
	// Untrusted reports that the run had read untrusted text when the summary was
	// written, so that the summary is placed in a fence.
	Untrusted bool       `json:"untrusted,omitempty"`
	Usage     *llm.Usage `json:"usage,omitempty"`
	Cost      *llm.Cost  `json:"cost,omitempty"`
}

func (HistoryCompressed) EventType() Type { return TypeHistoryCompressed }

// CompressTrigger is the cause of a compaction.
type CompressTrigger string

// The causes of a compaction.
const (
	// CompressThreshold: the estimate reached the configured share of the window.
	CompressThreshold CompressTrigger = "threshold"
	// CompressOverflow: the provider reported that the request is too large.
	CompressOverflow CompressTrigger = "overflow"
	// CompressRequested: a person asked for it, before the first request of the run.
	CompressRequested CompressTrigger = "requested"
)

// MessageRange is the range of messages from From up to, but not including, To.
type MessageRange struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// RepeatedResult is a result that the result of the call By repeats: with the same
// output, or as a newer state of the same thing.
type RepeatedResult struct {
	CallID string `json:"callId"`
	By     string `json:"by"`
}

// ClampedResult is a result of which the model from then on sees only this many
// characters of its head and its tail.
type ClampedResult struct {
	CallID string `json:"callId"`
	Chars  int    `json:"chars"`
}

// AnswerChecked is the result of checking an answer that would end the run
// against the run's schema.
type AnswerChecked struct {
	Cycle int `json:"cycle"`
	// Problem is why the answer is invalid, in words for the model; empty for a valid
	// one.
	Problem string `json:"problem,omitempty"`
}

func (AnswerChecked) EventType() Type { return "answer.checked" }

// NudgeKind is the reason for a nudge.
type NudgeKind string

// The kinds of nudges.
const (
	NudgeNoToolCall NudgeKind = "no_tool_call"
	NudgeEmpty      NudgeKind = "empty_response"
	NudgeTruncated  NudgeKind = "truncated"
	NudgeMalformed  NudgeKind = "malformed"
	NudgeStuck      NudgeKind = "stuck"
	NudgeInvalid    NudgeKind = "invalid_answer"
	// NudgeResult: the run must end with a call of its result tool, and the next
	// request offers no other.
	NudgeResult NudgeKind = "no_result"
	// NudgeWithheld: the provider was using tools of its own that it may no longer use.
	// Their unfinished calls are removed from the conversation.
	NudgeWithheld NudgeKind = "provider_tools_withheld"
)

// Nudge is a user message that the loop adds.
type Nudge struct {
	Kind NudgeKind `json:"kind"`
	Text string    `json:"text"`
}

func (Nudge) EventType() Type { return TypeNudge }

// Stuck reports repetition and the action against it.
type Stuck struct {
	Pattern string `json:"pattern"`
	Tool    string `json:"tool,omitempty"`
	// Count is how often in a row it has happened, including the current request.
	Count  int         `json:"count"`
	Action StuckAction `json:"action"`
	// CallID is the blocked call.
	CallID string `json:"callId,omitempty"`
}

func (Stuck) EventType() Type { return "stuck" }

// StuckAction is the action against repetition, in the order of severity.
type StuckAction string

// The actions against repetition.
const (
	StuckNudge StuckAction = "nudge"
	StuckBlock StuckAction = "block"
	StuckStop  StuckAction = "stop"
)

// CacheBreak names the first request segment that changed although the provider could
// have read it from its cache.
type CacheBreak struct {
	Segment         string  `json:"segment"`
	Guess           string  `json:"guess,omitempty"`
	TokensRewritten int64   `json:"tokensRewritten"`
	USD             float64 `json:"usd"`
}

func (CacheBreak) EventType() Type { return "cache.break" }
