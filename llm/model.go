package llm

import (
	"context"
	"encoding/json"
	"time"
)

// Model is a model behind one wire. Implementations are safe for concurrent use and
// never retry: only the machine decides about retries.
type Model interface {
	// Generate makes one call and returns the whole answer. If the call fails after a
	// part was received, the response contains that part, and the error, an *[Error],
	// says why it is incomplete.
	Generate(ctx context.Context, req *Request) (*Response, error)
}

// Streamer is a [Model] that can also deliver an answer incrementally. The engine
// prefers Stream unless the caller asked for whole answers.
type Streamer interface {
	Model
	// Stream is Generate with live deltas. It calls emit only from the calling
	// goroutine, in order, and never with an empty text except for [DeltaReset].
	Stream(ctx context.Context, req *Request, emit func(Delta)) (*Response, error)
}

// Encoder is a [Model] that can return the bytes of a request before sending it. The
// engine journals their digest before the call; Generate and Stream then send
// [Request.Encoded] instead of encoding twice.
type Encoder interface {
	Encode(req *Request) (*Encoded, error)
}

// Viewer is a [Model] that knows which images its provider rejects. Text replaces those
// in a request.
type Viewer interface {
	// Shows returns why an image cannot be shown to the model, or nil if it can.
	Shows(m *Media) error
}

// Encoded is a request body in pieces, so that unchanged pieces are neither encoded nor
// copied again.
type Encoded struct {
	Segments [][]byte
	// Digest identifies the concatenated segments: equal bytes give equal
	// digests within one run.
	Digest string
	// Prompt holds the first bytes of the hashes of what the model reads: everything
	// before the messages, then each message. It does not include cache marks, so a
	// message has the same hash wherever the marks are.
	Prompt []uint32
}

// Len returns the length of the body in bytes.
func (e *Encoded) Len() int64 {
	var n int64
	for _, s := range e.Segments {
		n += int64(len(s))
	}
	return n
}

// DefaultStallTimeout is how long a stream may send nothing, after the service has
// begun to answer, before the attempt counts as broken.
const DefaultStallTimeout = 2 * time.Minute

// Request is one call of a model, as data.
type Request struct {
	// Model is the provider's name of the model, without our prefix.
	Model    string
	System   string
	Messages []*Message
	// Tools are offered in this order. The engine sorts them by name once per run, so
	// that the prefix never changes.
	Tools []ToolDef
	// MaxTokens limits the answer; 0 leaves it to the adapter.
	MaxTokens   int
	Temperature *float64
	// Schema, if set, requests an answer that validates against it. If a model or a
	// service cannot enforce it, or not together with tools, the schema is added to the
	// system text. Adapters do not validate.
	Schema json.RawMessage
	// SchemaInPrompt reports that the model is known not to support schemas.
	SchemaInPrompt bool
	// ProviderTools are tools that the provider runs itself, by its names.
	ProviderTools []string
	// CacheKey groups requests that share a prefix: the id of the first run of a chain
	// of continued runs.
	CacheKey string
	// Cache is the lifetime to request for the provider's cache; "" is its ordinary
	// one.
	Cache Caching
	// Ordinal counts the run's earlier calls with a known outcome; a scripted or
	// replayed model finds its answer by it.
	Ordinal int
	// StallTimeout is how long a stream may send nothing; 0 is [DefaultStallTimeout].
	StallTimeout time.Duration
	// Encoded, if set, is the result of the adapter's Encode for this request.
	Encoded *Encoded
	// Memo, if set, caches encoded messages between calls of one run. The engine sets
	// it only for an [Encoder].
	Memo *Memo
}

// SystemNotes returns the text of the messages of [RoleSystem], for a wire that accepts
// such text only after the system text. It is "" for most requests.
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

// ToolDef is a tool's definition as the model sees it.
type ToolDef struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	// Deferred reports that the tool may be omitted until a search has found it. If a
	// provider does not support that, or no tool searches, it is offered from the
	// start. A run with a tool [CallTool] omits it from all requests.
	Deferred bool `json:"deferred,omitempty"`
	// Search marks the tool that finds deferred tools: [ToolResult.Tools] of its
	// results names them. At most one tool of a request is marked.
	Search bool `json:"search,omitempty"`
}

// Response is the result of one call.
type Response struct {
	Parts  Parts
	Finish Finish
	// RawFinish is the provider's value for Finish.
	RawFinish string
	// FinishDetail is the provider's explanation of Finish for people, such as the
	// reason for a refusal; "" if there is none.
	FinishDetail string
	Usage        Usage
	// Model is the model that answered, by the provider's name.
	Model string
	// ID is the provider's id of the answer, RequestID the id of the exchange, which
	// the provider's support needs.
	ID        string
	RequestID string
}

// DeltaKind is the kind of content that a [Delta] adds to.
type DeltaKind uint8

// The kinds of live deltas.
const (
	DeltaText DeltaKind = iota + 1
	DeltaReasoning
	DeltaToolCall
	// DeltaReset retracts all earlier deltas: they showed reasoning as text or text as
	// reasoning. The content that is still valid follows again.
	DeltaReset
)

// Delta is a piece of an answer as it arrives. Deltas are live only and never stored;
// the response contains their content.
type Delta struct {
	Kind DeltaKind
	// Index is the position of the part that the delta belongs to.
	Index int
	// Text is the added text: prose, reasoning, or a fragment of arguments.
	Text string
	// Tool is the tool's name, on the first delta of a call.
	Tool string
}

// Finish is the reason why a model stopped, in provider-neutral form.
type Finish string

// The finish reasons.
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

// Caller identifies the run that makes a model call, for models that answer each run of
// a tree differently, such as scripts. An engine puts it into the context of the call.
type Caller struct {
	// Names returns the names of the run, most specific first: its step, its agent.
	Names func() []string
	// Turn returns the number of calls of the tree to this model under a name, answered
	// or under way. From then on this call counts too.
	Turn func(ctx context.Context, name string) (int, error)
}

type callerKey struct{}

// WithCaller returns a context that carries the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller that a context carries; ok is false if it carries none.
func CallerOf(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// Target is a model that a program can call: its name ("provider/model"), the client
// that calls it, and its price.
//
// A nil Price means that the price is unknown, so no cost limit can be enforced: an
// agent that sets one is refused, and under the default limit a run begins with a
// warning. The Price of a free model is the zero value, not nil. A Price without a
// value for cached tokens charges them like other input.
type Target struct {
	Name   string
	Client Model
	Price  *Price
}

// Caching is the lifetime that a run requests for its providers' prompt caches.
type Caching string

// The values of the setting cache; "" is [CacheShort].
const (
	// CacheShort requests the ordinary lifetime, which every read renews.
	CacheShort Caching = "5m"
	// CacheLong requests an hour, if the provider offers that. Writing costs more, so
	// it suits runs that wait between cycles.
	CacheLong Caching = "1h"
	// CacheOff asks the provider to cache nothing, if that is possible.
	CacheOff Caching = "off"
)

// CacheRules describes how a provider caches the prefix of requests to one model, as
// far as its reports show.
type CacheRules struct {
	// Minimum is the length in tokens below which nothing is cached.
	Minimum int64
	// Step is the number of tokens that a read is rounded down to; 0 if a read ends
	// exactly where an earlier request did.
	Step int64
	// Lifetime is how long a prefix is kept after its last use.
	Lifetime time.Duration
	// WritesReported reports that usage includes the tokens written. Otherwise a
	// request's whole input counts as written.
	WritesReported bool
	// BestEffort reports that the provider guarantees nothing, so a miss alone is not
	// an error of the request.
	BestEffort bool
}

// Cacher is a [Model] that knows its provider's cache rules. ok is false if the rules
// of a model are unknown or it caches nothing.
type Cacher interface {
	CacheRules(model string, asked Caching) (rules CacheRules, ok bool)
}
