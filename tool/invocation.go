package tool

import (
	"context"

	"github.com/pawlrun/pawl/event"
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
	// Printed, if not nil, is called whenever the program has printed something. It
	// must return at once.
	Printed func()
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
