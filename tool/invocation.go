package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Invocation describes a program to run.
type Invocation struct {
	// Argv is the program and its arguments, without a shell.
	Argv []string
	// Env holds variables of its environment in addition to the usual ones, as
	// NAME=value.
	Env []string
	// Stdin is the program's input, nil for none.
	Stdin []byte
	// Facts are the facts by which the command was judged, as in [Call].
	Facts *event.Facts
	// Sandbox reports that the program may run only in the sandbox.
	Sandbox bool
	// Printed, if not nil, is called with each piece of what the program prints, which it
	// must not keep. It must return at once.
	Printed func(output []byte)
	// Apart keeps stderr separate from Output.
	Apart bool
	// Redact is as in [Call].
	Redact func(text string) string
}

// Ended describes how a command ended.
type Ended struct {
	// ExitCode is nil for a program that a signal ended, which Signal names, and for
	// one that was not started.
	ExitCode *int
	Signal   string
	// Output is the program's output. Truncated reports that a part of it was dropped.
	Output    string
	Truncated bool
	// Untrusted and Private are the labels of the output.
	Untrusted bool
	Private   bool
	// Reached and Changed are as in [Result].
	Reached []event.Reach
	Changed []event.Change
	// Stderr and Report are as in [event.CommandFinished].
	Stderr string
	Report *event.CommandReport
}

// Commands runs the commands that a run's machine asks for. It is safe for
// concurrent use.
type Commands interface {
	// Facts returns what a command touches, and the labels of its output, for policy.
	// It may read the outside world and must not change it.
	Facts(Invocation) (event.Facts, event.Labels)
	// Run runs a command to its end. If ctx ends first, it stops the program and
	// everything that the program started; the error is ctx's, and the result contains
	// what is known. An [*Error] means that the command was not started.
	Run(ctx context.Context, c Invocation) (Ended, error)
}

// Command describes a program that is a tool; ForCommand of package shell makes its
// [Tool].
//
// The program reads the arguments of a call as JSON from its stdin, and its stdout is
// the result. Exit code 0 means success, 2 that the program refuses the call, and any
// other code failure; stderr is shown after a refusal and a failure. The variables
// PAWL_CALL_ID and PAWL_IDEMPOTENCY_KEY contain the ID and the Key of the [Call].
type Command struct {
	Name        string
	Description string
	// Schema is as in [Tool].
	Schema json.RawMessage
	// Argv is the program and its arguments, without a shell.
	Argv []string
	// Effect is the effect of running the same call twice; empty means
	// [event.EffectAtMostOnce].
	Effect event.Effect
	// Risk and Labels are as in [Tool]. Without Labels the result is as trusted as that
	// of a shell command.
	Risk   event.Risk
	Labels *event.Labels
	// Timeout limits one attempt; 0 means [DefaultTimeout].
	Timeout time.Duration
	// Env holds variables of the program's environment in addition to the usual ones,
	// as NAME=value. The run keeps a value out of the journal if it is one of the
	// agent's secrets.
	Env []string
}

// Sampling is a request for the answer of a model, which a run of its own gives.
type Sampling struct {
	// Agent is the agent of the run that answers, and USD the limit on what all its
	// runs for the caller's run may cost.
	Agent string  `json:"agent"`
	USD   float64 `json:"usd"`
	// System and Messages are untrusted text.
	System   string           `json:"system,omitempty"`
	Messages []SampledMessage `json:"messages"`
	// MaxTokens bounds the answer, 0 for no bound beside the agent's own.
	MaxTokens int `json:"maxTokens,omitempty"`
}

// SampledMessage is one message of a [Sampling]. Role is user or assistant.
type SampledMessage struct {
	Role  string      `json:"role"`
	Text  string      `json:"text,omitempty"`
	Media []llm.Media `json:"media,omitempty"`
}

// Sampled is the answer to a [Sampling]. Cut reports that it ends at the bound.
type Sampled struct {
	Text string
	Cut  bool
}
