package machine

import (
	"time"

	"github.com/pawlrun/pawl/event"
)

// CommandTool is the tool by whose rules policy judges a command: its argv is
// that tool's command line.
const CommandTool = "shell.exec"

// RunCommand asks for one attempt at running a program. Its intent is
// command.started; its settlement command.finished.
type RunCommand struct {
	// ID names the command among all of the run's.
	ID string
	// Argv are the program and its arguments; no shell reads them.
	Argv []string
	// Env are variables that it has beside the usual ones, as NAME=value.
	Env []string
	// Stdin is what it reads, nil for nothing.
	Stdin []byte
	// IdleLimit bounds how long it may print nothing, WallLimit how long it may run;
	// 0 bounds nothing.
	IdleLimit, WallLimit time.Duration
	Attempt              int
	// Step is the step of a workflow that the command is, empty for none.
	Step string
	// Effect is what running it twice would do; empty means
	// [event.EffectAtMostOnce].
	Effect event.Effect
	// MaxOutputChars bounds what command.finished shows of the output, the whole of
	// which is kept; 0 bounds nothing.
	MaxOutputChars int
	// WholeJSON exempts an output that is one JSON value of at most [MostJSON] bytes from
	// that bound.
	WholeJSON bool
	// Permission is the rule by which the owner lets the command run unasked, empty
	// for none. What policy denies stays denied.
	Permission string
	// Verdict is what policy says of it, and the facts that it goes by. Where it is
	// nil nobody has judged the command: its record is then policy.decision, by the
	// rules of the run's environment, and the action stays due.
	Verdict *event.PolicyDecision
	// Worktree says that it runs in a git worktree of the step's own.
	Worktree bool
}

// MostJSON is how many bytes of JSON command.finished shows whole where that is asked for.
const MostJSON = 1 << 20

func (RunCommand) action() {}
