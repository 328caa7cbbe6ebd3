package event

import (
	"fmt"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// CommandStarted is the intent of a command: stored before its program may start.
type CommandStarted struct {
	// ID names the command among all of the run's.
	ID   string   `json:"id"`
	Argv []string `json:"argv"`
	// Dir is relative to the workspace; "." is the workspace.
	Dir     string `json:"dir"`
	Attempt int    `json:"attempt"`
	// Effect decides what becomes of a command that was cut off.
	Effect Effect `json:"effect"`
	// Step is the step of a workflow that the command is, empty for none.
	Step string `json:"step,omitempty"`
}

// OfStep is the step that the command is.
func (d CommandStarted) OfStep() string { return d.Step }

// EventType is command.started.
func (CommandStarted) EventType() Type { return "command.started" }

// CommandFinished settles an attempt at a command, also one that never started.
type CommandFinished struct {
	ID string `json:"id"`
	// ExitCode is how the program ended, or Signal what ended it; both are absent
	// if it never ran, or if its end is unknown.
	ExitCode *int   `json:"exitCode,omitempty"`
	Signal   string `json:"signal,omitempty"`
	// ErrorType and Error are why the command did not run to its end. An exit code
	// that is not 0 is no error here: the machine that asked for the command knows
	// what it means.
	ErrorType ErrorType `json:"errorType,omitempty"`
	Error     string    `json:"error,omitempty"`
	// Limit is the limit that ended it: idle, wall, or the budget setting of the run.
	Limit string `json:"limit,omitempty"`
	// Rule is the rule of the policy that kept it from running.
	Rule   string `json:"rule,omitempty"`
	Output string `json:"output"`
	// Truncated and Blob are as in [ToolResult].
	Truncated bool   `json:"truncated,omitempty"`
	Blob      string `json:"blob,omitempty"`
	// Untrusted and Private are what the output was found to be.
	Untrusted bool `json:"untrusted,omitempty"`
	Private   bool `json:"private,omitempty"`
	// DurationMs is how long the attempt lasted, without what the clock skipped.
	DurationMs int64 `json:"durationMs"`
	// Reached and Changed are as in [ToolResult].
	Reached []Reach  `json:"reached,omitempty"`
	Changed []Change `json:"changed,omitempty"`
	Step    string   `json:"step,omitempty"`
	// Stderr is the end of what it printed as errors, where that is kept apart from
	// its output.
	Stderr string `json:"stderr,omitempty"`
	// Report is what a program that is an agent itself said of its work.
	Report *CommandReport `json:"report,omitempty"`
	// Worktree is where it ran, of one that has a worktree of its own.
	Worktree *Worktree `json:"worktree,omitempty"`
}

// CommandReport is what an agent that runs as a process of its own says of its work.
type CommandReport struct {
	// Form is whose stream of events the output is: claude, codex, gemini or pawl;
	// empty where it is a text.
	Form string `json:"form,omitempty"`
	// Text is its last word in that stream, and Failed why the stream says that the
	// work failed.
	Text   string `json:"text,omitempty"`
	Failed string `json:"failed,omitempty"`
	// Result is what it wrote into the file that it is given for its result.
	Result string `json:"result,omitempty"`
	// Usage and Cost are what the stream says that the work took; nil where it does
	// not say.
	Usage *llm.Usage `json:"usage,omitempty"`
	Cost  *llm.Cost  `json:"cost,omitempty"`
	// Limited is how it said that its provider's limit is reached, empty where it is
	// not, and Until when that ends, where it said so.
	Limited string     `json:"limited,omitempty"`
	Until   *time.Time `json:"until,omitempty"`
}

// Failure is why a command did not do its work, nil where it did.
func (d *CommandFinished) Failure() *Failure {
	switch {
	case d.ErrorType != "":
		f := &Failure{Class: string(d.ErrorType), Message: d.Error}
		if d.Limit != LimitIdle && d.Limit != LimitWall {
			f.Limit = d.Limit // the run's
		}
		return f
	case d.Signal != "":
		return &Failure{Class: "signal", Message: "it was ended by " + d.Signal}
	case d.ExitCode != nil && *d.ExitCode != 0:
		return &Failure{Class: "exit_code", Message: fmt.Sprintf("it exited with %d", *d.ExitCode)}
	}
	return nil
}

// OfStep is the step that the command is.
func (d CommandFinished) OfStep() string { return d.Step }

// EventType is command.finished.
func (CommandFinished) EventType() Type { return "command.finished" }

// The limits of a command's own, as [CommandFinished] names them.
const (
	LimitIdle = "idle"
	LimitWall = "wall"
)
