// Package tool is the contract of a tool: what it declares to the loop and to
// the model, how it is called, and how its result is bounded.
//
// The declaration decides what happens around a call: its effect class governs
// recovery after a crash, read-only and concurrency-safe govern what may run
// beside it, and its resource keys keep overlapping calls apart. What is not
// declared is assumed to be dangerous.
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Tool is one tool. The zero value of each optional field is the safe choice.
type Tool struct {
	// Name may contain dots; wire adapters map it to what a provider allows.
	Name        string
	Description string
	// Schema is the JSON Schema (2020-12) of the arguments, an object.
	Schema json.RawMessage
	// Effect is what running the same call twice would do; empty means
	// [event.EffectIdempotent] of a tool that is read-only, and of any other
	// [event.EffectAtMostOnce].
	Effect event.Effect
	// Risk is what harm every call of the tool can do, in the place of what
	// Facts says of the single call; empty leaves it to Facts. A tool that
	// deletes, sends, moves money or changes rights asks before every call.
	Risk event.Risk
	// ReadOnly says that the tool changes nothing.
	ReadOnly bool
	// Concurrent says that calls may run beside others; where it depends on
	// the arguments, set ConcurrentFor instead.
	Concurrent    bool
	ConcurrentFor func(args json.RawMessage) bool
	// Polling says that the same call is meant to be made again and again, as
	// to see whether something has finished: it is never taken for a loop.
	Polling bool
	// Access names the resources that a call touches; nil means unknown.
	Access func(args json.RawMessage) []event.Access
	// Check says what keeps a call from being run whoever permits it, so that
	// nobody is asked about it; nil means that nothing is known to. It may look at
	// the world and must not change it. An [*Error] says the type of the failure.
	Check func(args json.RawMessage) error
	// Facts says what a call touches, for policy; nil means that nothing is
	// known of it but the tool. It may look at the world and must not change it.
	Facts func(args json.RawMessage) event.Facts
	// Writing gives the facts of the calls by which a file of this machine could
	// be written or replaced, none where no call can; nil means that none is
	// known. By them a run is kept from tools that could write its journal
	// unasked, and so decide about calls in a person's place.
	Writing func(file string) []event.Facts
	// Describe gives a short label of a call for people; nil means the name.
	Describe func(args json.RawMessage) string
	// Timeout bounds one attempt; 0 means [DefaultTimeout]. TimeoutFor, where
	// set, reads it from the arguments.
	Timeout    time.Duration
	TimeoutFor func(args json.RawMessage) time.Duration
	// Labels say what text a call brings in and what it can carry out; where
	// that depends on the call, set LabelsFor instead. Where both are nil, the
	// results are untrusted, and the tool can send unless it is read-only.
	Labels    *event.Labels
	LabelsFor func(args json.RawMessage, facts *event.Facts) event.Labels
	// Sandboxed says that Run runs a call in the sandbox where [Call.Sandbox]
	// says so. Such a call of any other tool is refused.
	Sandboxed bool
	// Deferred says that the model need not be told of the tool before a search
	// has found it, where its provider can hold tools back.
	Deferred bool
	// Search says that the tool finds deferred ones, by [Result.Tools]. A set
	// has at most one such tool.
	Search bool
	// Agent says that a call starts a run of its own, which the driver does; such
	// a tool has no Run. See [ForAgent].
	Agent bool
	// Run does the work. It must return soon after ctx ends. An error becomes
	// a structured result; so does a panic.
	Run func(ctx context.Context, c Call) (Result, error)
}

// effect is the class of the tool's calls: what changes nothing may be done again.
func (t *Tool) effect() event.Effect {
	switch {
	case t.Effect != "":
		return t.Effect
	case t.ReadOnly:
		return event.EffectIdempotent
	}
	return event.EffectAtMostOnce
}

// DefaultTimeout bounds a call of a tool that does not say (PRODUCT 6).
const DefaultTimeout = 120 * time.Second

// Call is one attempt at a tool call.
type Call struct {
	// ID is unique in the tree of runs; Key is the same for every attempt at
	// the call and fit to be an idempotency key.
	ID      string
	Key     string
	Attempt int
	// Spent is how long the attempts ran that failed before this one, for a tool
	// that bounds all of them together.
	Spent time.Duration
	Args  json.RawMessage
	// Facts are what the call was judged by. A tool that finds something else
	// when it runs must refuse the call: the decision was about another one.
	Facts *event.Facts
	// Sandbox says that the call may run in the sandbox only.
	Sandbox bool
	// MaxResultChars is how much of the result the model will see, in
	// characters; 0 is all of it.
	MaxResultChars int
	// Results reads what earlier calls of the run gave; nil outside a run.
	Results Results
	// Redact takes the secrets that the run knows out of a text; nil outside a
	// run. The engine takes them out of every result. A tool that drops a part
	// of its output itself must not leave half of a secret, and looks by this.
	Redact func(text string) string
}

// Results are the outputs that were too large for the model and are kept
// whole. It is safe for concurrent use.
type Results interface {
	// Read returns the output behind a handle of this run, or of one that it
	// continues; an [*Error] of type not_found for any other.
	Read(ctx context.Context, handle string) (Stored, error)
}

// Stored is one output that is kept whole. Content must not be changed.
type Stored struct {
	Content []byte
	// Untrusted and Private are what the result was declared to be when it came.
	Untrusted bool
	Private   bool
}

// Result is what a call gave. Output is what the model sees, after bounding.
type Result struct {
	Output    string
	IsError   bool
	ErrorType event.ErrorType
	ExitCode  *int
	Media     []llm.Media
	// Tools names the deferred tools that a search found. Output should say as
	// much in words, because most providers have no other way to tell a model.
	Tools []string
	// Untrusted and Private add to what the tool's labels say.
	Untrusted bool
	Private   bool
	Truncated bool
	// EndsRun ends the run with Output as its final output.
	EndsRun bool
	// Pin names a piece of the work's state that Output holds whole, such as
	// the open todos or the goal: the newest result of each name stays in the
	// conversation word for word when that becomes shorter, and those before it
	// are the first to leave. A failed call pins nothing.
	Pin string
	// Reached are the machines that the call asked for through the sandbox.
	Reached []event.Reach
}

// Error is an error with a type that the model and the journal see.
type Error struct {
	Type    event.ErrorType
	Message string
	Err     error
	// NothingCame says that Message holds the tool's own words alone, and
	// nothing that the call was to bring in: its result is neither untrusted nor
	// private, whatever the call's labels say.
	NothingCame bool
}

// Error is the message for the model.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorOutput is the text of a failed call as the model sees it: the error,
// its type, and whatever output there was before it.
func ErrorOutput(kind event.ErrorType, message, output string) string {
	b, err := readable(struct {
		Error  string          `json:"error"`
		Type   event.ErrorType `json:"type"`
		Output string          `json:"output,omitempty"`
	}{message, kind, output})
	if err != nil {
		return message
	}
	return string(b)
}

// readable encodes a value as JSON for a model: what is escaped for the sake
// of web pages would only be harder to read and dearer.
func readable(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
