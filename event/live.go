package event

// Live-only events: they are published while a model speaks, carry neither
// pos nor seq, and are never stored. What they add up to is in model.response,
// or in model.attempt_failed when the attempt broke.

// Text is a piece of the answer's prose.
type Text struct {
	Text    string `json:"text"`
	Attempt int    `json:"attempt"`
	Index   int    `json:"index"`
}

// Reasoning is a piece of the model's thought.
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

// TextReset says that the streamed text of an attempt must be discarded: the
// attempt failed and another follows, or what was streamed as text was a thought and
// the attempt's text begins again.
type TextReset struct {
	Attempt int `json:"attempt"`
}

// The names of the live events.
const (
	TypeText          Type = "text"
	TypeReasoning     Type = "reasoning"
	TypeToolCallDelta Type = "tool_call.delta"
	TypeTextReset     Type = "text.reset"
)

// EventType is text.
func (Text) EventType() Type { return TypeText }

// EventType is reasoning.
func (Reasoning) EventType() Type { return TypeReasoning }

// EventType is tool_call.delta.
func (ToolCallDelta) EventType() Type { return TypeToolCallDelta }

// EventType is text.reset.
func (TextReset) EventType() Type { return TypeTextReset }
