package event

// Live events are published while a model streams its answer or a tool works. They have
// neither pos nor seq, and are never stored. The content of a model's is in
// model.response, or in model.attempt_failed if the attempt broke.

// Text is a piece of the answer's text.
type Text struct {
	Text    string `json:"text"`
	Attempt int    `json:"attempt"`
	Index   int    `json:"index"`
}

// Reasoning is a piece of the model's reasoning.
type Reasoning struct {
	Text    string `json:"text"`
	Attempt int    `json:"attempt"`
	Index   int    `json:"index"`
}

// ToolCallDelta is a piece of a call's arguments.
type ToolCallDelta struct {
	Tool    string `json:"tool,omitempty"`
	Text    string `json:"text"`
	Attempt int    `json:"attempt"`
	Index   int    `json:"index"`
}

// TextReset reports that the streamed text of an attempt must be discarded: the attempt
// failed and another follows, or the text was reasoning and the attempt's text starts
// again.
type TextReset struct {
	Attempt int `json:"attempt"`
}

// ToolProgress is how far a call is, as its tool reports it.
type ToolProgress struct {
	CallID  string `json:"callId"`
	Attempt int    `json:"attempt"`
	// Done increases, up to Total if that is known.
	Done    float64 `json:"done"`
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

// ToolOutput is a piece of what the program of a call has printed. The result of the call
// has the whole output.
type ToolOutput struct {
	CallID  string `json:"callId"`
	Attempt int    `json:"attempt"`
	// At is the place of Text in the output of the attempt, in bytes. A part of an output
	// that comes too fast is left out.
	At   int64  `json:"at"`
	Text string `json:"text"`
}

// The names of the live events.
const (
	TypeText          Type = "text"
	TypeReasoning     Type = "reasoning"
	TypeToolCallDelta Type = "tool_call.delta"
	TypeTextReset     Type = "text.reset"
	TypeToolProgress  Type = "tool.progress"
	TypeToolOutput    Type = "tool.output"
)

// EventType returns text.
func (Text) EventType() Type { return TypeText }

// EventType returns reasoning.
func (Reasoning) EventType() Type { return TypeReasoning }

// EventType returns tool_call.delta.
func (ToolCallDelta) EventType() Type { return TypeToolCallDelta }

// EventType returns text.reset.
func (TextReset) EventType() Type { return TypeTextReset }

// EventType returns tool.progress.
func (ToolProgress) EventType() Type { return TypeToolProgress }

// EventType returns tool.output.
func (ToolOutput) EventType() Type { return TypeToolOutput }
