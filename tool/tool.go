// Package tool defines a tool: what it declares to the loop and to the model,
// how it is called, and how its result is bounded.
//
// The declaration decides what happens around a call: its effect class sets
// what happens after a crash, read-only and concurrent set what may run beside
// it, and its resource keys keep overlapping calls apart. What is not declared
// is assumed to be dangerous.
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
	// Title is a name for people, which a search for tools reads as well.
	Title string
	// Aliases are what other programs call it, for the files that were written for
	// those.
	Aliases []string
	// Schema is the JSON Schema (2020-12) of the arguments, an object.
	Schema json.RawMessage
	// Effect is what running the same call twice would do; empty means
	// [event.EffectIdempotent] for a read-only tool and [event.EffectAtMostOnce]
	// for any other.
	Effect event.Effect
	// Risk is the harm that every call of the tool can do, replacing what Facts
	// says of the single call; empty leaves it to Facts. A tool that deletes,
	// sends, moves money or changes rights asks before every call.
	Risk event.Risk
	// ReadOnly says that the tool changes nothing.
	ReadOnly bool
	// Concurrent says that calls may run beside others; if that depends on the
	// arguments, set ConcurrentFor instead.
	Concurrent    bool
	ConcurrentFor func(args json.RawMessage) bool
	// Polling says that the same call is meant to be repeated, for example to see
	// whether something has finished. It never counts as repetition.
	Polling bool
	// Access names the resources that a call touches; nil means unknown.
	Access func(args json.RawMessage) []event.Access
	// Check returns an error for a call that cannot run even with permission, so
	// that no person is asked about it; nil means no check. It may read the outside
	// world and must not change it. An [*Error] sets the type of the failure.
	Check func(args json.RawMessage) error
	// Facts returns what a call touches, for policy; nil means that only the tool
	// is known. It may read the outside world and must not change it.
	Facts func(args json.RawMessage) event.Facts
	// Writing returns the facts of the calls that could write or replace a file of
	// this machine; an empty result means that no call can, nil means that none is
	// known. A run is refused if one of its tools could write its journal without
	// asking, and so approve calls.
	Writing func(file string) []event.Facts
	// Describe returns a short label of a call for people; nil means the name.
	Describe func(args json.RawMessage) string
	// Timeout limits one attempt; 0 means [DefaultTimeout]. TimeoutFor, if set,
	// reads it from the arguments.
	Timeout    time.Duration
	TimeoutFor func(args json.RawMessage) time.Duration
	// Labels declare what a call reads and whether it can send; if that depends on
	// the call, set LabelsFor instead. If both are nil, the results are untrusted,
	// and the tool can send unless it is read-only.
	Labels    *event.Labels
	LabelsFor func(args json.RawMessage, facts *event.Facts) event.Labels
	// Sandboxed says that Run runs a call in the sandbox if [Call.Sandbox] is set.
	// Such a call of any other tool is refused.
	Sandboxed bool
	// Deferred says that the model need not be told of the tool until a search has
	// found it, if its provider supports that or the set has a tool [llm.CallTool].
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
	// declared is the compiled form of the schema that [New] made, nil for none.
	declared *declared
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

// DefaultTimeout limits a call of a tool without a Timeout.
const DefaultTimeout = 120 * time.Second

// Call is one attempt at a tool call.
type Call struct {
	// ID is unique in the tree of runs. Key is the same for every attempt at the
	// call; use it as an idempotency key.
	ID      string
	Key     string
	Attempt int
	// Spent is how long the failed attempts before this one ran, for a tool that
	// limits all of them together.
	Spent time.Duration
	Args  json.RawMessage
	// Input is what a person answered to the form of the attempt before, nil for none;
	// see [InputRequired]. Attempts that follow after a failure get it as well.
	Input *event.FormAnswer
	// Task is what [Run.Keep] has kept of the call, nil for nothing. An attempt that has
	// one asks for the task and does not begin the call again.
	Task json.RawMessage
	// Run is the run that makes the call; nil outside a run.
	Run Run
	// Facts are what the call was judged by. A tool that finds something else when
	// it runs must refuse the call, because the decision was about another one.
	Facts *event.Facts
	// Sandbox says that the call may run only in the sandbox.
	Sandbox bool
	// MaxResultChars is how much of the result the model will see, in characters; 0
	// means all of it.
	MaxResultChars int
	// Results reads the results of earlier calls of the run; nil outside a run.
	Results Results
	// Redact removes the secrets that the run knows from a text; nil outside a run.
	// The engine removes them from every result. A tool that drops a part of its
	// output must use Redact so that no half of a secret remains.
	Redact func(text string) string
	// Seen returns the digest of the content that the run knows of a file of the
	// workspace, as [Result.Files] gave it last; nil outside a run, where nothing has
	// been seen.
	Seen func(path string) (digest string, ok bool)
	// Post hands a message to the parent run, and returns what became of it; nil in
	// a root run, or if the parent carries no messages. The same call can post the
	// same message again: it counts once.
	Post func(ctx context.Context, to, text string, kind event.MessageKind) (string, error)
}

// Results are the outputs that were too large for the model and are stored
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

// Result is the result of a call. Output is what the model sees, after
// bounding.
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
	// Pin names a piece of the work's state that Output holds whole, such as the
	// open todos or the goal. Compaction keeps the newest result of each name
	// unchanged and removes the older ones first. A failed call pins nothing.
	Pin string
	// Reached are the machines that the call asked for through the sandbox.
	Reached []event.Reach
	// Changed are the protected paths that the call changed without a decision.
	Changed []event.Change
	// Files are the files whose content the run knows since this call. The journal
	// keeps them, and later calls of the run get them by [Call.Seen].
	Files []event.FileSeen
	// Server says that the call found the tools of its MCP server different from those
	// that the run began with. The journal has each change once.
	Server *event.ServerChanged
	// Raw is the output as it came where Output is what a terminal would show of it.
	// The journal keeps it whole, as a result that can be read on. Overwritten is
	// how many lines of it later output replaced, see [Screen].
	Raw         string
	Overwritten int
}

// Error is an error with a type that the model and the journal see.
type Error struct {
	Type    event.ErrorType
	Message string
	Err     error
	// NothingCame says that Message is entirely the tool's own text: the result is
	// neither untrusted nor private, whatever the call's labels say.
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
