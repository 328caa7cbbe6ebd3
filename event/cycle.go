package event

import "github.com/pawlrun/pawl/llm"

// CycleStart opens a cycle: one model call and the tool calls it asks for.
// Cycles count from 1 (ALDO-38, ALDO-50).
type CycleStart struct {
	Cycle     int `json:"cycle"`
	MaxCycles int `json:"maxCycles"`
}

// ModelRequested is the intent of one attempt at a model call.
type ModelRequested struct {
	Attempt int    `json:"attempt"`
	Model   string `json:"model"`
	// RequestDigest identifies the bytes that are about to be sent.
	RequestDigest string `json:"requestDigest,omitempty"`
	RequestBytes  int64  `json:"requestBytes,omitempty"`
}

// CallRef names a call of a response; its arguments are in tool_call.
type CallRef struct {
	CallID string `json:"callId"`
	Tool   string `json:"tool"`
}

// ModelResponse settles a model call (ALDO-41). The message is kept as parts;
// the arguments of its calls are in the tool_call events of the same commit,
// so that nothing is stored twice.
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
	// FinishDetail is the provider's own explanation, as of a refusal.
	FinishDetail string `json:"finishDetail,omitempty"`
}

// Answer is a response's parts. In the stored form its calls come without
// arguments; those are in the tool_call events beside it.
type Answer llm.Parts

// MarshalJSON leaves the arguments of calls out.
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

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Answer) UnmarshalJSON(b []byte) error { return (*llm.Parts)(a).UnmarshalJSON(b) }

// ModelAttemptFailed settles an attempt that gave no whole answer.
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
	// RetryAfterMs is what the provider asked for; absent when it did not.
	RetryAfterMs *int64 `json:"retryAfterMs,omitempty"`
}

// ModelRetrying announces the next attempt, before its wait (ALF-20).
type ModelRetrying struct {
	Attempt   int    `json:"attempt"`
	DelayMs   int64  `json:"delayMs"`
	Reason    string `json:"reason"`
	FromModel string `json:"fromModel"`
	ToModel   string `json:"toModel"`
}

// ToolResults closes the tool phase of a cycle (ALDO-45); the outputs are in
// the tool_result events.
type ToolResults struct {
	Cycle   int         `json:"cycle"`
	Results []ResultRef `json:"results"`
}

// ResultRef is one line of [ToolResults], in call order.
type ResultRef struct {
	CallID  string `json:"callId"`
	Tool    string `json:"tool"`
	IsError bool   `json:"isError"`
}

// HistoryCompressed says exactly what left the history and what stayed.
type HistoryCompressed struct {
	Strategy     string     `json:"strategy"`
	Dropped      int        `json:"dropped"`
	Kept         int        `json:"kept"`
	TokensBefore int64      `json:"tokensBefore"`
	TokensAfter  int64      `json:"tokensAfter"`
	Summary      string     `json:"summary,omitempty"`
	Usage        *llm.Usage `json:"usage,omitempty"`
	Cost         *llm.Cost  `json:"cost,omitempty"`
}

// NudgeKind says what a nudge is about.
type NudgeKind string

// The kinds of nudges.
const (
	NudgeNoToolCall NudgeKind = "no_tool_call"
	NudgeEmpty      NudgeKind = "empty_response"
	NudgeTruncated  NudgeKind = "truncated"
	NudgeMalformed  NudgeKind = "malformed"
	NudgeStuck      NudgeKind = "stuck"
)

// Nudge is a user message that the loop itself adds.
type Nudge struct {
	Kind NudgeKind `json:"kind"`
	Text string    `json:"text"`
}

// Stuck reports repetition and what was done about it.
type Stuck struct {
	Pattern string `json:"pattern"`
	Tool    string `json:"tool,omitempty"`
	Count   int    `json:"count"`
	Action  string `json:"action"`
}

// CacheBreak names the first request segment that changed although the
// provider could have read it from its cache.
type CacheBreak struct {
	Segment         string  `json:"segment"`
	Guess           string  `json:"guess,omitempty"`
	TokensRewritten int64   `json:"tokensRewritten"`
	USD             float64 `json:"usd"`
}
