package event

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// CommandStarted is the intent of a command. It is stored before the program may start.
type CommandStarted struct {
	// ID names the command among all of the run.
	ID   string   `json:"id"`
	Argv []string `json:"argv"`
	// Dir is relative to the workspace; "." is the workspace.
	Dir     string `json:"dir"`
	Attempt int    `json:"attempt"`
	// Effect decides what happens to a command that was interrupted.
	Effect Effect `json:"effect"`
	// Step is the step of a workflow that the command performs, empty for none.
	Step string `json:"step,omitempty"`
}

// OfStep returns the step that the command performs.
func (d CommandStarted) OfStep() string { return d.Step }

// EventType returns command.started.
func (CommandStarted) EventType() Type { return "command.started" }

// CommandFinished settles an attempt at a command, including one that never started.
type CommandFinished struct {
	ID string `json:"id"`
	// ExitCode is the program's exit code, or Signal the signal that ended it; both are
	// absent if it never ran, or if its end is unknown.
	ExitCode *int   `json:"exitCode,omitempty"`
	Signal   string `json:"signal,omitempty"`
	// ErrorType and Error are why the command did not run to its end. A nonzero exit
	// code is no error here: the machine that requested the command interprets it.
	ErrorType ErrorType `json:"errorType,omitempty"`
	Error     string    `json:"error,omitempty"`
	// Limit is the limit that ended it: idle, wall, or a budget setting of the run.
	Limit string `json:"limit,omitempty"`
	// Rule is the rule of the policy that prevented it.
	Rule   string `json:"rule,omitempty"`
	Output string `json:"output"`
	// Truncated and Blob are as in [ToolResult].
	Truncated bool   `json:"truncated,omitempty"`
	Blob      string `json:"blob,omitempty"`
	// Untrusted and Private are the labels of the output.
	Untrusted bool `json:"untrusted,omitempty"`
	Private   bool `json:"private,omitempty"`
	// DurationMs is the duration of the attempt, without time that the clock skipped.
	DurationMs int64 `json:"durationMs"`
	// Reached and Changed are as in [ToolResult].
	Reached []Reach  `json:"reached,omitempty"`
	Changed []Change `json:"changed,omitempty"`
	Step    string   `json:"step,omitempty"`
	// Stderr is the end of its stderr, if that is separate from its output.
	Stderr string `json:"stderr,omitempty"`
	// Report is the report of a program that is an agent.
	Report *CommandReport `json:"report,omitempty"`
	// Worktree is its worktree, if it has one.
	Worktree *Worktree `json:"worktree,omitempty"`
}

// CommandReport is the report of an agent that runs as a process.
type CommandReport struct {
	// Form is the format of its event stream: claude, codex, gemini or pawl; empty if
	// its output is text.
	Form string `json:"form,omitempty"`
	// Text is the last text in that stream, and Failed the reason for a failure in it.
	Text   string `json:"text,omitempty"`
	Failed string `json:"failed,omitempty"`
	// Result is the content of its result file.
	Result string `json:"result,omitempty"`
	// Usage and Cost are the totals in the stream; nil if it contains none.
	Usage *llm.Usage `json:"usage,omitempty"`
	Cost  *llm.Cost  `json:"cost,omitempty"`
	// Limited is its message that its provider's limit is reached, empty if it is not,
	// and Until when the limit ends, if known.
	Limited string     `json:"limited,omitempty"`
	Until   *time.Time `json:"until,omitempty"`
}

// Failure returns why a command did not do its work, nil if it did.
func (d *CommandFinished) Failure() *Failure {
	switch {
	case d.ErrorType != "":
		f := &Failure{Class: string(d.ErrorType), Message: d.Error}
		if d.Limit != LimitIdle && d.Limit != LimitWall {
			f.Limit = d.Limit // a budget setting of the run
		}
		return f
	case d.Signal != "":
		return &Failure{Class: "signal", Message: "it was ended by " + d.Signal}
	case d.ExitCode != nil && *d.ExitCode != 0:
		return &Failure{Class: "exit_code", Message: fmt.Sprintf("it exited with %d", *d.ExitCode)}
	}
	return nil
}

// OfStep returns the step that the command performs.
func (d CommandFinished) OfStep() string { return d.Step }

// EventType returns command.finished.
func (CommandFinished) EventType() Type { return "command.finished" }

// The limits of a command itself, as in [CommandFinished].
const (
	LimitIdle = "idle"
	LimitWall = "wall"
)

// CommandTool is a program that a run offers as a tool, as it was when the run began.
type CommandTool struct {
	Name string   `json:"name"`
	Argv []string `json:"argv"`
	// Schema is the schema of the arguments; absent if there are none.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Files are the program and its scripts, as far as this user can change them. A
	// call is refused if one of them has changed.
	Files []CommandFile `json:"files,omitempty"`
}

// CommandFile is the content of a file when the run began.
type CommandFile struct {
	Path string `json:"path"`
	// Digest is "sha256:" and the hex digest; empty if there was no file.
	Digest string `json:"digest,omitempty"`
}

// WaitStarted is the intent of a wait. It continues when another process resumes the
// run.
type WaitStarted struct {
	// ID names the wait among all of the run.
	ID    string    `json:"id"`
	Until time.Time `json:"until"`
}

func (WaitStarted) EventType() Type { return "wait.started" }

// WaitFinished records that the time of a wait has come.
type WaitFinished struct {
	ID string `json:"id"`
}

func (WaitFinished) EventType() Type { return "wait.finished" }

// ConditionEvaluated is the result of an expression. A fold reads it and never
// evaluates the expression again.
type ConditionEvaluated struct {
	// ID names the evaluation among all of the run.
	ID         string `json:"id"`
	Step       string `json:"step,omitempty"`
	Expression string `json:"expression"`
	// Value is the result, as JSON; Error is the error.
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
	// ErrorType is the kind of the error, if it has one: missing_key, for example.
	ErrorType string `json:"errorType,omitempty"`
}

func (ConditionEvaluated) EventType() Type  { return "condition.evaluated" }
func (d ConditionEvaluated) OfStep() string { return d.Step }
