// Package tool defines a tool: its declaration to the loop and to the model, how it is
// called, and how its result is bounded.
//
// The declaration decides what happens around a call: the effect class what happens
// after a crash, read-only and concurrent which calls may run beside it, and the
// resource keys which calls overlap. A property that is not declared has its most
// dangerous value.
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
	// Name may contain dots; wire adapters map it to a name that the provider allows.
	Name        string
	Description string
	// Title is a name for people, which a search for tools also matches.
	Title string
	// Aliases are names of the tool in other programs, for files written for those.
	Aliases []string
	// Schema is the JSON Schema (2020-12) of the arguments, an object.
	Schema json.RawMessage
	// Effect is the effect of running the same call twice; empty means
	// [event.EffectIdempotent] for a read-only tool and [event.EffectAtMostOnce] for
	// any other.
	Effect event.Effect
	// Risk is the harm that every call of the tool can do. It overrides the Facts of a
	// call; empty leaves the risk to Facts. A tool that deletes, sends, moves money or
	// changes rights asks before every call.
	Risk event.Risk
	// ReadOnly declares that the tool changes nothing.
	ReadOnly bool
	// Concurrent declares that calls may run beside others; if that depends on the
	// arguments, set ConcurrentFor instead.
	Concurrent    bool
	ConcurrentFor func(args json.RawMessage) bool
	// Polling declares that repeating the same call is intended, for example to see
	// whether something has finished. It never counts as repetition.
	Polling bool
	// Access returns the resources that a call touches; nil means unknown.
	Access func(args json.RawMessage) []event.Access
	// Check returns an error for a call that cannot run even with permission, so that
	// no person is asked about it; nil means no check. It may read the outside world
	// and must not change it. An [*Error] sets the type of the failure.
	Check func(args json.RawMessage) error
	// Facts returns what a call touches, for policy; nil means that only the tool
	// is known. It may read the outside world and must not change it.
	Facts func(args json.RawMessage) event.Facts
	// Writing returns the facts of the calls that could write or replace a file of this
	// machine; an empty result means that no call can, nil means that none is known. A
	// run is refused if one of its tools could write its journal without asking, and so
	// approve calls.
	Writing func(file string) []event.Facts
	// Describe returns a short label of a call for people; nil means the name.
	Describe func(args json.RawMessage) string
	// Timeout limits one attempt; 0 means [DefaultTimeout]. TimeoutFor, if set, returns
	// it for the arguments.
	Timeout    time.Duration
	TimeoutFor func(args json.RawMessage) time.Duration
	// Labels declare what a call reads and whether it can send; if that depends on
	// the call, set LabelsFor instead. If both are nil, the results are untrusted,
	// and the tool can send unless it is read-only.
	Labels    *event.Labels
	LabelsFor func(args json.RawMessage, facts *event.Facts) event.Labels
	// Sandboxed declares that Run runs a call in the sandbox if [Call.Sandbox] is set.
	// Such a call of any other tool is refused.
	Sandboxed bool
	// Remote declares that calls run on another machine and touch no file of this one.
	Remote bool
	// Deferred declares that requests may omit the tool until a search has found it, if
	// the provider supports that or the set has a tool [llm.CallTool].
	Deferred bool
	// Search declares that the tool finds deferred tools, by [Result.Tools]. A set has
	// at most one such tool.
	Search bool
	// Agent declares that a call starts a child run, which the driver does; such a tool
	// has no Run. See [ForAgent].
	Agent bool
	// Run executes a call. It must return soon after ctx ends. An error or a panic
	// becomes a structured result.
	Run func(ctx context.Context, c Call) (Result, error)
	// declared is the compiled schema that [New] made, nil for none.
	declared *declared
}

// effect returns the effect class: a call that changes nothing may be repeated.
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
	// Spent is the duration of the failed attempts before this one, for a tool that
	// limits all of them together.
	Spent time.Duration
	Args  json.RawMessage
	// Input is a person's answer to the form of an earlier attempt, nil for none; see
	// [InputRequired]. Retries after a failure have it too.
	Input *event.FormAnswer
	// Task is the data that [Run.Keep] stored for the call, nil for none. An attempt
	// with a task asks for its result and does not start the work again.
	Task json.RawMessage
	// Run is the run that makes the call; nil outside a run.
	Run Run
	// Facts are the facts by which the call was judged. A tool that finds different
	// facts when it runs must refuse the call, because the decision was about other
	// facts.
	Facts *event.Facts
	// Sandbox reports that the call may run only in the sandbox.
	Sandbox bool
	// MaxResultChars is how many characters of the result the model will see; 0 means
	// all.
	MaxResultChars int
	// Results reads the results of earlier calls of the run; nil outside a run.
	Results Results
	// Redact removes the secrets that the run knows from a text; nil outside a run. The
	// engine redacts every result. A tool that drops a part of its output must use
	// Redact so that no half of a secret remains.
	Redact func(text string) string
	// Seen returns the digest of the content that the run knows of a file of the
	// workspace, from the last [Result.Files]; nil outside a run.
	Seen func(path string) (digest string, ok bool)
	// Post sends a message to the parent run, and returns its status; nil in a root
	// run, or if the parent carries no messages. The same call may post the same
	// message again: it counts once.
	Post func(ctx context.Context, to, text string, kind event.MessageKind) (string, error)
}

// Results reads outputs that were too large for the model and are stored whole. It is
// safe for concurrent use.
type Results interface {
	// Read returns the output for a handle of this run, or of one that it continues; an
	// [*Error] of type not_found for any other.
	Read(ctx context.Context, handle string) (Stored, error)
}

// Stored is one output that is stored whole. Content must not be changed.
type Stored struct {
	Content []byte
	// Untrusted and Private are the labels of the result.
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
	// Tools names the deferred tools that a search found. Output should name them too,
	// because most providers have no other way to inform a model.
	Tools []string
	// Untrusted and Private add to the tool's labels.
	Untrusted bool
	Private   bool
	Truncated bool
	// EndsRun ends the run with Output as its final output.
	EndsRun bool
	// Pin names a piece of the work's state that Output contains whole, such as the
	// open todos or the goal. Compaction keeps the newest result of each name unchanged
	// and removes the older ones first. A failed call pins nothing.
	Pin string
	// Reached are the machines that the call requested through the sandbox.
	Reached []event.Reach
	// Changed are the protected paths that the call changed without a decision.
	Changed []event.Change
	// Files are the files whose content the run knows since this call. The journal
	// stores their digests, and later calls of the run get them by [Call.Seen].
	Files []event.FileSeen
	// Server reports that the tools of the call's MCP server differ from those when the
	// run began. The journal contains each change once.
	Server *event.ServerChanged
	// Raw is the original output if Output is what a terminal would show. The journal
	// stores it whole, and the model can read it as a stored result. Overwritten is how
	// many lines later output replaced, see [Screen].
	Raw         string
	Overwritten int
	// Structured is the structured content of a result of an MCP server, as JSON. The
	// journal keeps it apart from Output, which has it as well if the model is to see it.
	Structured json.RawMessage
}

// Error is an error whose type the model and the journal show.
type Error struct {
	Type    event.ErrorType
	Message string
	Err     error
	// NothingCame reports that Message is entirely the tool's own text: the result is
	// neither untrusted nor private, whatever the call's labels are.
	NothingCame bool
}

// Error returns the message for the model.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorOutput returns the text of a failed call for the model: the error, its type, and
// the output before it.
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

// readable encodes a value as JSON for a model, without the escapes for web pages,
// which are harder to read and cost more.
func readable(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// labels returns the labels of a call for the rule of two. An undeclared tool is
// assumed to return untrusted text, and to send its input unless it changes nothing.
func (t *compiled) labels(args json.RawMessage, facts *event.Facts) event.Labels {
	switch {
	case t.LabelsFor != nil:
		return t.LabelsFor(args, facts)
	case t.Labels != nil:
		return *t.Labels
	}
	return event.Labels{Untrusted: true, Outgoing: !t.ReadOnly}
}

// Fences reports whether some tool may return untrusted text, so that a run needs a
// fence for it.
func (s *Set) Fences() bool {
	if s == nil {
		return false
	}
	for _, t := range s.sorted {
		if t.LabelsFor != nil || t.Labels == nil || t.Labels.Untrusted {
			return true
		}
	}
	return false
}

// TransientError is a failure that may succeed in another attempt, such as a busy
// server; the call itself is correct. The loop makes another attempt if the tool is
// declared pure, idempotent or read-only and no person had to approve the call.
// Otherwise the model receives it like any failure.
type TransientError struct {
	Err error
	// RetryAfter is how long the other side asks to wait; nil leaves it to the loop. If
	// it is more than a minute, the model receives the failure instead.
	RetryAfter *time.Duration
}

// Transient marks an error as a [TransientError]; nil stays nil.
func Transient(err error) error {
	if err == nil {
		return nil
	}
	return &TransientError{Err: err}
}

// TransientAfter is [Transient] for an error with a time to wait.
func TransientAfter(err error, wait time.Duration) error {
	if err == nil {
		return nil
	}
	return &TransientError{Err: err, RetryAfter: &wait}
}

// Error returns the message of the cause, which the model sees.
func (e *TransientError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *TransientError) Unwrap() error { return e.Err }
