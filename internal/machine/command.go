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
	// ID identifies the command among all commands of the run.
	ID string
	// Argv contains the program and its arguments. No shell interprets them.
	Argv []string
	// Env contains variables in addition to the default ones, as NAME=value.
	Env []string
	// Stdin is the program's input, nil for none.
	Stdin []byte
	// IdleLimit limits the time without output, and WallLimit the total time; 0 means
	// no limit.
	IdleLimit, WallLimit time.Duration
	Attempt              int
	// Step is the workflow step that the command carries out, or empty.
	Step string
	// Effect is the effect class; empty means [event.EffectAtMostOnce].
	Effect event.Effect
	// MaxOutputChars limits the output in command.finished; 0 means no limit. The whole
	// output is stored separately.
	MaxOutputChars int
	// WholeJSON exempts output that is one JSON value of at most [MostJSON] bytes from
	// that limit.
	WholeJSON bool
	// Permission is the rule that lets the command run without a question, or empty. A
	// command that policy denies stays denied.
	Permission string
	// Verdict is the decision of policy with its facts. If it is nil, the command has
	// not been judged yet: the rules of the run's environment judge it, the record is
	// policy.decision, and the action stays due.
	Verdict *event.PolicyDecision
	// Worktree reports whether the command runs in the git worktree of its step.
	Worktree bool
}

// MostJSON is the maximum size in bytes of JSON that command.finished contains whole
// under WholeJSON.
const MostJSON = 1 << 20

func (RunCommand) action() {}
