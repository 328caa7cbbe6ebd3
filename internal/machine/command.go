package machine

import (
	"time"

	"github.com/pawlrun/pawl/event"
)

// CommandTool is the tool whose rules apply to a command. Its argv is that
// tool's command line.
const CommandTool = "shell.exec"

// RunCommand runs a program once. Its intent is command.started; its settlement
// command.finished.
type RunCommand struct {
	// ID names the command among all of the run's.
	ID string
	// Argv holds the program and its arguments; no shell reads them.
	Argv []string
	// Env holds variables in addition to the usual ones, as NAME=value.
	Env []string
	// Stdin is the program's input, nil for none.
	Stdin []byte
	// IdleLimit bounds the time without output, WallLimit the time in all; 0 is no
	// bound.
	IdleLimit, WallLimit time.Duration
	Attempt              int
	// Step is the workflow step that the command carries out, empty for none.
	Step string
	// Effect is the effect class; empty means [event.EffectAtMostOnce].
	Effect event.Effect
	// MaxOutputChars bounds the output in command.finished; the whole output is
	// stored beside it. 0 is no bound.
	MaxOutputChars int
	// WholeJSON exempts output that is one JSON value of at most [MostJSON] bytes
	// from that bound.
	WholeJSON bool
	// Permission is the rule that lets the command run without a question, empty for
	// none. A command that policy denies stays denied.
	Permission string
	// Verdict is the decision of policy, with the facts behind it. If it is nil, the
	// command has not been judged: its record is then policy.decision, by the rules
	// of the run's environment, and the action stays due.
	Verdict *event.PolicyDecision
	// Worktree reports whether the command runs in the git worktree of its step.
	Worktree bool
}

// MostJSON is how many bytes of JSON command.finished contains whole under
// WholeJSON.
const MostJSON = 1 << 20

func (RunCommand) action() {}
