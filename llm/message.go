package llm

import (
	"bytes"
	"encoding/json"
)

// Role is the author of a [Message].
type Role string

// The roles of a conversation. The owner's system text is not a message: it is
// [Request.System], so that no later turn can imitate it.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	// RoleTool carries the results of one cycle's calls, in call order.
	RoleTool Role = "tool"
	// RoleSystem is text that the loop adds with the system's authority: the summary of
	// compacted messages, if the owner configured that. It contains text only. If a
	// wire has no place for it among the messages, it follows the system text
	// ([Request.SystemNotes]).
	RoleSystem Role = "system"
)

// Message is one turn of a conversation. A message that was passed in a [Request] must
// not be changed: its encoded form is cached by identity.
type Message struct {
	Role  Role  `json:"role"`
	Parts Parts `json:"parts"`
	// Origin names the model ("provider/model") that produced an assistant message.
	// Reasoning of another origin is never sent back. On a user's message it is empty
	// or [OriginLoop].
	Origin string `json:"origin,omitempty"`
}

// OriginLoop is the origin of messages that the loop adds with the user's or the
// system's role, such as a nudge or the summary of compacted messages.
const OriginLoop = "loop"

// UserText returns a user message with one text part.
func UserText(text string) *Message {
	return &Message{Role: RoleUser, Parts: Parts{Text{Text: text}}}
}

// Text concatenates the message's text parts.
func (m *Message) Text() string { return m.Parts.Text() }

// Part is one piece of a message: [Text], [Reasoning], [Media], [ToolCall],
// [ToolResult] or [Item].
type Part interface{ kind() partKind }

// Text is prose, from either side.
type Text struct {
	Text string `json:"text"`
	// Raw is the provider's own item if Text alone would lose information (citations,
	// the id of an item that reasoning is paired with).
	Raw json.RawMessage `json:"raw,omitempty"`
}

// Reasoning is a model's reasoning before its answer. Signature and Raw are opaque and
// are sent back unchanged, as a whole or not at all.
type Reasoning struct {
	Text      string          `json:"text,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Raw       json.RawMessage `json:"raw,omitempty"`
}

// Media is an image or another file, inline or by reference.
type Media struct {
	MediaType string `json:"mediaType"`
	Name      string `json:"name,omitempty"`
	// Data is the content. It is absent from a stored form with Blob.
	Data []byte `json:"data,omitempty"`
	URL  string `json:"url,omitempty"`
	// Blob is the digest of Data if the journal stores the content separately. The
	// engine sets it; adapters read only Data.
	Blob string `json:"blob,omitempty"`
}

// MarshalJSON omits content that is stored separately.
func (m Media) MarshalJSON() ([]byte, error) {
	if m.Blob != "" {
		m.Data = nil
	}
	type plain Media
	return marshalPlain(plain(m))
}

// ToolCall is a model's request to run a tool.
type ToolCall struct {
	// CallID is Pawl's id, unique in the tree of runs. ProviderID is the provider's,
	// which may repeat across turns.
	CallID     string `json:"callId,omitempty"`
	ProviderID string `json:"providerId,omitempty"`
	Name       string `json:"name"`
	// Args is the JSON from the model. If it is not valid JSON, Args is empty and
	// ArgsText contains the text as received.
	Args     json.RawMessage `json:"args,omitempty"`
	ArgsText string          `json:"argsText,omitempty"`
	// Signature ties the call to the reasoning before it (Gemini).
	Signature string          `json:"signature,omitempty"`
	Raw       json.RawMessage `json:"raw,omitempty"`
}

// ToolResult answers one [ToolCall].
type ToolResult struct {
	CallID     string `json:"callId"`
	ProviderID string `json:"providerId,omitempty"`
	Name       string `json:"name"`
	Output     string `json:"output"`
	IsError    bool   `json:"isError,omitempty"`
	// Media are images or files that belong to the result.
	Media []Media `json:"media,omitempty"`
	// Tools names the deferred tools that a search found; the model may call them from
	// then on.
	Tools []string `json:"tools,omitempty"`
	// Pin names a piece of the work's state that the result contains, such as the open
	// todos. It is not sent to the provider: compaction keeps the newest result of each
	// name unchanged.
	Pin string `json:"pin,omitempty"`
}

// Item is the record of a provider's own action (a hosted search, its result, a
// compaction block). It is shown, and sent back unchanged.
type Item struct {
	Type string          `json:"itemType"`
	Raw  json.RawMessage `json:"raw"`
}

type partKind string

const (
	kindText       partKind = "text"
	kindReasoning  partKind = "reasoning"
	kindMedia      partKind = "media"
	kindToolCall   partKind = "tool_call"
	kindToolResult partKind = "tool_result"
	kindItem       partKind = "item"
)

func (Text) kind() partKind       { return kindText }
func (Reasoning) kind() partKind  { return kindReasoning }
func (Media) kind() partKind      { return kindMedia }
func (ToolCall) kind() partKind   { return kindToolCall }
func (ToolResult) kind() partKind { return kindToolResult }
func (Item) kind() partKind       { return kindItem }

// CallTool is the tool through which a model calls a tool that its requests do not
// list. Its arguments are the name of that tool and its arguments.
const CallTool = "tool.call"

type indirect struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// Inner returns the call that a call of [CallTool] contains. It reports whether the
// arguments are valid; models also write the inner ones as a string.
func (c ToolCall) Inner() (inner ToolCall, ok bool) {
	if c.Name != CallTool {
		return c, false
	}
	var asked indirect
	dec := json.NewDecoder(bytes.NewReader(c.Args))
	dec.DisallowUnknownFields()
	if dec.Decode(&asked) != nil || asked.Tool == "" || asked.Tool == CallTool {
		return c, false
	}
	var text string
	if json.Unmarshal(asked.Args, &text) == nil && text != "" {
		asked.Args = json.RawMessage(text)
	}
	if string(asked.Args) == "null" || len(asked.Args) == 0 {
		asked.Args = json.RawMessage("{}")
	}
	if !json.Valid(asked.Args) || bytes.TrimSpace(asked.Args)[0] != '{' {
		return c, false
	}
	c.Name, c.Args, c.ArgsText = asked.Tool, asked.Args, ""
	return c, true
}

// Outer returns the arguments of a call as the model made it, for a tool with the name
// as: those of c itself, or those of the call of [CallTool] that contains c.
func (c ToolCall) Outer(as string) json.RawMessage {
	if as != CallTool || c.Name == as || c.Name == "" || len(c.Args) == 0 {
		return c.Args
	}
	name, err := json.Marshal(c.Name)
	if err != nil {
		return c.Args
	}
	return bytes.Join([][]byte{[]byte(`{"tool":`), name, []byte(`,"args":`), c.Args, []byte("}")}, nil)
}
