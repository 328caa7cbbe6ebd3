package llm

import (
	"context"
	"encoding/json"
	"time"
)

// Model is one model behind one wire. Implementations are safe for concurrent
// use and never retry: retries live in the machine alone.
type Model interface {
	// Generate makes one call and returns the whole answer. When the call
	// fails after something was received, the response holds what came and
	// the error says why it is not whole; the error is an *[Error].
	Generate(ctx context.Context, req *Request) (*Response, error)
}

// Streamer is a [Model] that can also deliver an answer while it is made. Where a model
// has it, it is used unless the caller asked for whole answers.
type Streamer interface {
	Model
	// Stream is Generate with live deltas. It calls emit from the calling
	// goroutine only, in order, and never with an empty text but for [DeltaReset].
	Stream(ctx context.Context, req *Request, emit func(Delta)) (*Response, error)
}

// Encoder is a [Model] that can say which bytes a request becomes. The engine
// journals their digest before the call; Generate and Stream then send
// [Request.Encoded] instead of encoding twice.
type Encoder interface {
	Encode(req *Request) (*Encoded, error)
}

// Viewer is a [Model] that knows which images its provider refuses. A request
// replaces those with text.
type Viewer interface {
	// Shows returns why an image is not shown to the model, or nil if it is.
	Shows(m *Media) error
}

// Encoded is a request body in pieces, so that a piece that did not change is
// neither encoded nor copied again.
type Encoded struct {
	Segments [][]byte
	// Digest identifies the concatenated segments: equal bytes give equal
	// digests within one run.
	Digest string
	// Prompt are the beginnings of the hashes of what the model reads: everything
	// before the messages, then each message. It does not include cache marks, so a
	// message has the same hash wherever the marks are.
	Prompt []uint32
}

// Len is the body's length in bytes.
func (e *Encoded) Len() int64 {
	var n int64
	for _, s := range e.Segments {
		n += int64(len(s))
	}
	return n
}

// DefaultStallTimeout is how long a stream may say nothing, once the service has begun
// to answer, before the attempt counts as broken.
const DefaultStallTimeout = 2 * time.Minute

// Request is one call of a model, as data.
type Request struct {
	// Model is the provider's own name of the model, without our prefix.
	Model    string
	System   string
	Messages []*Message
	// Tools are offered in this order; the engine sorts them by name once
	// per run, so that the prefix never moves.
	Tools []ToolDef
	// MaxTokens limits the answer; 0 leaves it to the adapter.
	MaxTokens   int
	Temperature *float64
	// Schema, if set, asks for an answer that validates against it. If a model or a
	// service cannot enforce it, or not beside tools, the schema is added to the
	// system text. Adapters validate nothing.
	Schema json.RawMessage
	// SchemaInPrompt says that the model is known not to answer by schema.
	SchemaInPrompt bool
	// ProviderTools are tools that the provider runs itself, by its names.
	ProviderTools []string
	// CacheKey groups requests that share a prefix: the id of the first of the
	// runs that continue one another.
	CacheKey string
	// Cache is the lifetime to ask of the provider's cache; "" is its ordinary one.
	Cache Caching
	// Ordinal counts the calls of the run whose outcome was known before
	// this one; a scripted or replayed model finds its place by it.
	Ordinal int
	// StallTimeout is how long a stream may say nothing; 0 is [DefaultStallTimeout].
	StallTimeout time.Duration
	// Encoded, if set, is this request as the adapter's Encode made it.
	Encoded *Encoded
	// Memo, if set, remembers encoded messages between calls of one run. The engine
	// sets it for an [Encoder] only.
	Memo *Memo
}

// SystemNotes is the text of the messages of [RoleSystem], for a wire that takes
// such text only beside the system text. It is "" for most requests.
func (r *Request) SystemNotes() string {
	notes := ""
	for _, m := range r.Messages {
		switch {
		case m.Role != RoleSystem:
		case notes == "":
			notes = m.Text()
		default:
			notes += "\n\n" + m.Text()
		}
	}
	return notes
}

// ToolDef is a tool as it is described to the model.
type ToolDef struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	// Deferred says that the tool may be left out until a search has found it. If a
	// provider does not support that, or no tool searches, it is offered from the
	// beginning. A run with a tool [CallTool] leaves it out of all requests.
	Deferred bool `json:"deferred,omitempty"`
	// Search marks the tool that finds deferred ones: [ToolResult.Tools] of its
	// results names them. At most one tool of a request is marked.
	Search bool `json:"search,omitempty"`
}

// Response is the result of one call.
type Response struct {
	Parts  Parts
	Finish Finish
	// RawFinish is the provider's own value for Finish.
	RawFinish string
	// FinishDetail is the provider's explanation of Finish, for people, such as why
	// it refused. It is "" if there is none.
	FinishDetail string
	Usage        Usage
	// Model is the model that answered, as the provider names it.
	Model string
	// ID is the provider's id of the answer, RequestID that of the exchange
	// (what its support asks for).
	ID        string
	RequestID string
}

// DeltaKind says what a [Delta] adds to.
type DeltaKind uint8

// The kinds of live deltas.
const (
	DeltaText DeltaKind = iota + 1
	DeltaReasoning
	DeltaToolCall
	// DeltaReset takes back all deltas before it: what they showed as text was a
	// thought, or the other way. What is still true of it follows again.
	DeltaReset
)

// Delta is a piece of an answer as it arrives. Deltas are live only: they are
// never stored, and what they build up to is in the response.
type Delta struct {
	Kind DeltaKind
	// Index is the position of the part that the delta belongs to.
	Index int
	// Text is what was added: prose, thought, or a fragment of arguments.
	Text string
	// Tool is the tool's name, on the first delta of a call.
	Tool string
}

// Finish is why a model stopped, in provider-neutral form.
type Finish string

// The closed list of finish reasons.
const (
	FinishEnd       Finish = "end"
	FinishTool      Finish = "tool"
	FinishLength    Finish = "length"
	FinishContext   Finish = "context"
	FinishPause     Finish = "pause"
	FinishRefusal   Finish = "refusal"
	FinishMalformed Finish = "malformed"
	FinishFailed    Finish = "failed"
)
