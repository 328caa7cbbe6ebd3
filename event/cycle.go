package event

import "github.com/pawlrun/pawl/llm"

// CycleStart opens a cycle: one model call and the tool calls it asks for.
// Cycles count from 1.
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
	// RequestDigest identifies the bytes that are about to be sent.
	RequestDigest string `json:"requestDigest,omitempty"`
	RequestBytes  int64  `json:"requestBytes,omitempty"`
	// Prompt tells the prompt from that of the run's previous request; absent
	// where the provider's cache is not known.
	Prompt *PromptSums `json:"prompt,omitempty"`
	// Withheld are the provider's own tools that this request does not name
	// although the run has them; nil where it names all.
	Withheld *Withheld `json:"withheld,omitempty"`
}

func (ModelRequested) EventType() Type { return TypeModelRequested }

// PromptSums identifies the segments of a request that a provider may cache,
// by what is new since the run's previous request, so that a change can be named
// after a restart too. A sum is the first four bytes of a hash, in hexadecimal.
type PromptSums struct {
	// Fixed are the sums of the tools, the system text and everything before
	// the messages together, joined; absent where they are those of the
	// previous request.
	Fixed string `json:"fixed,omitempty"`
	// Kept counts the first messages that are those of the previous request,
	// Messages all of them. New are the joined sums of those in between, as
	// many as are kept; the rest is not compared.
	Kept     int    `json:"kept"`
	Messages int    `json:"messages"`
	New      string `json:"new,omitempty"`
}

// CallRef names a call of a response; its arguments are in tool_call.
type CallRef struct {
	CallID string `json:"callId"`
	Tool   string `json:"tool"`
}

// ModelResponse settles a model call. The message is kept as parts;
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
	FinishDetail string  `json:"finishDetail,omitempty"`
	Purpose      Purpose `json:"purpose,omitempty"`
}

func (ModelResponse) EventType() Type { return TypeModelResponse }

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
	RetryAfterMs *int64  `json:"retryAfterMs,omitempty"`
	Purpose      Purpose `json:"purpose,omitempty"`
	// Room is what the provider said of the room for the request.
	Room *llm.Room `json:"room,omitempty"`
	// Adapted says that the same request is sent in another form the next time.
	Adapted bool `json:"adapted,omitempty"`
}

func (ModelAttemptFailed) EventType() Type { return TypeModelAttemptFailed }

// ModelRetrying announces the next attempt, before its wait.
type ModelRetrying struct {
	Attempt   int    `json:"attempt"`
	DelayMs   int64  `json:"delayMs"`
	Reason    string `json:"reason"`
	FromModel string `json:"fromModel"`
	ToModel   string `json:"toModel"`
	// Purpose is that of the call that failed.
	Purpose Purpose `json:"purpose,omitempty"`
}

func (ModelRetrying) EventType() Type { return "model.retrying" }

// ToolResults closes the tool phase of a cycle; the outputs are in
// the tool_result events.
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

// HistoryCompressed records exactly which messages were removed from the
// conversation and which were kept. The removed messages are still in
// the events before it, so that they can be shown and the step undone.
type HistoryCompressed struct {
	Strategy string `json:"strategy"`
	// Trigger is what made it due.
	Trigger CompressTrigger `json:"trigger,omitempty"`
	// Dropped and Kept count messages. Kept counts the summary in.
	Dropped int `json:"dropped"`
	Kept    int `json:"kept"`
	// TokensBefore and TokensAfter are estimates of the request, system text
	// and tools included.
	TokensBefore int64 `json:"tokensBefore"`
	TokensAfter  int64 `json:"tokensAfter"`
	// Cleared are the calls whose results a stub replaced, Clamped those whose
	// results were shortened.
	Cleared []string        `json:"cleared,omitempty"`
	Clamped []ClampedResult `json:"clamped,omitempty"`
	// Repeated are the results that a later one says again, and that a stub
	// replaced for that.
	Repeated []RepeatedResult `json:"repeated,omitempty"`
	// Removed are the messages that left, as places in the conversation before.
	Removed []MessageRange `json:"removed,omitempty"`
	// Summary is the text of the message that stands for them, SummaryAt its
	// place in the conversation after.
	Summary   string `json:"summary,omitempty"`
	SummaryAt int    `json:"summaryAt,omitempty"`
	// SummaryRole is who says the summary: the user's place where it is empty,
	// "system" where the owner wants it to have the system's authority.
	SummaryRole llm.Role `json:"summaryRole,omitempty"`
	// Untrusted says that the run had read untrusted text when the summary was
	// made, so that the summary is placed between the fence's markers.
	Untrusted bool       `json:"untrusted,omitempty"`
	Usage     *llm.Usage `json:"usage,omitempty"`
	Cost      *llm.Cost  `json:"cost,omitempty"`
}

func (HistoryCompressed) EventType() Type { return TypeHistoryCompressed }

// CompressTrigger is what made a compression due.
type CompressTrigger string

// The triggers of a compression.
const (
	// CompressThreshold: the estimate reached the declared share of the window.
	CompressThreshold CompressTrigger = "threshold"
	// CompressOverflow: the provider said that the request does not fit.
	CompressOverflow CompressTrigger = "overflow"
)

// MessageRange is the messages from From up to, and without, To.
type MessageRange struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// RepeatedResult is a result that the one of the call By says again: with the
// same output, or as a newer state of the same thing.
type RepeatedResult struct {
	CallID string `json:"callId"`
	By     string `json:"by"`
}

// ClampedResult is a result of which the model from then on sees so many
// characters of its head and its tail.
type ClampedResult struct {
	CallID string `json:"callId"`
	Chars  int    `json:"chars"`
}

// AnswerChecked is the result of checking an answer that would end the run
// against the run's schema.
type AnswerChecked struct {
	Cycle int `json:"cycle"`
	// Problem says why the answer is none, in words for the model; empty for
	// one that is valid.
	Problem string `json:"problem,omitempty"`
}

func (AnswerChecked) EventType() Type { return "answer.checked" }

// NudgeKind says what a nudge is about.
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
	// NudgeWithheld: the provider was going on with tools of its own that it may
	// not use any more. Its half-done calls of them leave the conversation.
	NudgeWithheld NudgeKind = "provider_tools_withheld"
)

// Nudge is a user message that the loop adds itself.
type Nudge struct {
	Kind NudgeKind `json:"kind"`
	Text string    `json:"text"`
}

func (Nudge) EventType() Type { return TypeNudge }

// Stuck reports repetition and what was done about it.
type Stuck struct {
	Pattern string `json:"pattern"`
	Tool    string `json:"tool,omitempty"`
	// Count is how often in a row it has happened, with what is asked for now.
	Count  int         `json:"count"`
	Action StuckAction `json:"action"`
	// CallID is the call that is blocked.
	CallID string `json:"callId,omitempty"`
}

func (Stuck) EventType() Type { return "stuck" }

// StuckAction is what is done about repetition, in the order of severity.
type StuckAction string

// The actions against repetition.
const (
	StuckNudge StuckAction = "nudge"
	StuckBlock StuckAction = "block"
	StuckStop  StuckAction = "stop"
)

// CacheBreak names the first request segment that changed although the
// provider could have read it from its cache.
type CacheBreak struct {
	Segment         string  `json:"segment"`
	Guess           string  `json:"guess,omitempty"`
	TokensRewritten int64   `json:"tokensRewritten"`
	USD             float64 `json:"usd"`
}

func (CacheBreak) EventType() Type { return "cache.break" }
