package tool

import (
	"context"

	"github.com/pawlrun/pawl/event"
)

// Invocation is a program that is to be run.
type Invocation struct {
	// Argv is the program and its arguments. No shell reads them.
	Argv []string
	// Env are variables of its environment beside the usual ones, as NAME=value.
	Env []string
	// Stdin is the program's input, nil for none.
	Stdin []byte
	// Facts are what the command was judged by, as in [Call].
	Facts *event.Facts
	// Sandbox says that the program may run only in the sandbox.
	Sandbox bool
	// Printed is called whenever the program has printed something; may be nil. It
	// must return at once.
	Printed func()
	// Apart keeps what the program prints to its stderr out of its output.
	Apart bool
	// Redact is as in [Call].
	Redact func(text string) string
}

// Ended is how a command ended.
type Ended struct {
	// ExitCode is nil for a program that a signal ended, which Signal then names,
	// and for one that was not started.
	ExitCode *int
	Signal   string
	// Output is what it printed. Truncated says that some of it was dropped.
	Output    string
	Truncated bool
	// Untrusted and Private are what the output is.
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
	// Facts returns what a command touches, and what its output is and can send,
	// for policy. It may read the outside world and must not change it.
	Facts(Invocation) (event.Facts, event.Labels)
	// Run runs a command to its end. If ctx ends first, the program is stopped with
	// everything that it started; the error is ctx's, and the result holds what is
	// known. An [*Error] says why a command was not started.
	Run(ctx context.Context, c Invocation) (Ended, error)
}
