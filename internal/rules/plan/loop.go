package plan

import (
	"encoding/json"
	"math"
	"time"

	"github.com/pawlrun/pawl/internal/rules/eval"
)

// Loop is a graph that is done many times: once for each item, side by side, or
// again and again until something holds. A step's loop, a team that iterates, a
// refinement loop and a goal are four ways to write one.
type Loop struct {
	Body Plan `json:"body"`
	// Single says that the body is the step itself: its one step has no id of its
	// own.
	Single bool `json:"single,omitempty"`
	// Items are what there is one iteration for; nil where iterations follow each
	// other.
	Items *Items `json:"items,omitempty"`
	// Max is how many iterations there may be, where they follow each other.
	Max int `json:"max,omitempty"`
	// StopWhen are looked at in order after each iteration, and the first that holds
	// ends the loop; before the cap is.
	StopWhen []Stop `json:"stopWhen,omitempty"`
	// Delay is the time between two iterations.
	Delay time.Duration `json:"delay,omitempty"`
	// Output is what the loop's content is made of.
	Output Output `json:"output,omitempty"`
	// OnLimit is what it means that none of StopWhen held within Max.
	OnLimit OnLimit `json:"onLimit,omitempty"`
	// OnError is what a failed iteration means, where they follow each other.
	OnError OnIterationError `json:"onError,omitempty"`
	// ErrorsMax is how many iterations in a row may fail before the loop does, where a
	// failed one is not the end, 0 for any number.
	ErrorsMax int `json:"errorsMax,omitempty"`
	// JudgeFailuresMax is how many verdicts in a row may be missing before the loop
	// fails, 0 for any number.
	JudgeFailuresMax int   `json:"judgeFailuresMax,omitempty"`
	Carry            Carry `json:"carry,omitzero"`
	// StuckAfter is how many iterations in a row may change neither a file of the
	// workspace nor the number of passing tests, 0 for any number.
	StuckAfter int `json:"stuckAfter,omitempty"`
	// OnlyAnswers says that the agent of an iteration can change no file, so that an
	// answer that differs from the one before counts for StuckAfter as a change, too.
	OnlyAnswers bool `json:"onlyAnswers,omitempty"`
	// Goal makes the loop one that works towards a goal: all of StopWhen must then hold,
	// each looked at once those before it do. Nil for other loops.
	Goal *Goal `json:"goal,omitempty"`
}

// Items are what a loop goes over.
type Items struct {
	// Static are the items; Expression gives them where it is not empty, and is
	// evaluated once.
	Static     []json.RawMessage `json:"static,omitempty"`
	Expression string            `json:"expression,omitempty"`
	// Max is how many items there may be.
	Max int `json:"max,omitempty"`
	// Concurrency is how many are under way at once, 0 for all.
	Concurrency int `json:"concurrency,omitempty"`
	// OnError is what a failed item means for the others.
	OnError OnItemError `json:"onError,omitempty"`
	// MinSuccess is how many items must succeed, MinSuccessPercent how many of a
	// hundred; 0 for no such demand.
	MinSuccess        int     `json:"minSuccess,omitempty"`
	MinSuccessPercent float64 `json:"minSuccessPercent,omitempty"`
}

// Least is how many of a number of items must succeed.
func (i *Items) Least(of int) int {
	return max(i.MinSuccess, int(math.Ceil(i.MinSuccessPercent*float64(of)/100)))
}

// Stop is one reason to end a loop. Exactly one of Expression, Judge, Regex, Command,
// Eval and Human is set, but for an Eval that has a Judge.
type Stop struct {
	// Expression must give true.
	Expression string `json:"expression,omitempty"`
	// Judge is the name of the agent that looks at each iteration.
	Judge string `json:"judge,omitempty"`
	// Regex must be found in the iteration's content, whatever the case.
	Regex string `json:"regex,omitempty"`
	// Command must exit with 0.
	Command *Command `json:"command,omitempty"`
	// Eval must pass the iteration. Where it is one that asks a model, Judge is the agent
	// that is asked.
	Eval *eval.Evaluator `json:"eval,omitempty"`
	// Human must approve of the iteration.
	Human *Human `json:"human,omitempty"`
}

// Kind is what the reason is called where a run ends by it.
func (s *Stop) Kind() string {
	switch {
	case s.Expression != "":
		return "cel"
	case s.Eval != nil:
		return string(s.Eval.Kind)
	case s.Judge != "":
		return "judge"
	case s.Regex != "":
		return "regex"
	case s.Human != nil:
		return "human"
	}
	return "command"
}

// Human is a person who reviews each iteration that comes so far.
type Human struct {
	// Prompt is what the person is asked, beside the output.
	Prompt string `json:"prompt,omitempty"`
	// Timeout is how long a review waits before it ends the run, 0 for any time.
	Timeout time.Duration `json:"timeout,omitempty"`
	// GoesOn says that an approval ends nothing, and Feedback that a rejection asks for
	// another iteration instead of failing the loop.
	GoesOn   bool `json:"goesOn,omitempty"`
	Feedback bool `json:"feedback,omitempty"`
}

// Output is what the content of a loop is made of.
type Output string

// The ways to make it.
const (
	// Last is the content of the last iteration.
	Last Output = ""
	// Cumulative is that of all, with what judges said.
	Cumulative Output = "cumulative"
)

// OnLimit is what a loop ends as that came to its cap and had reasons to stop.
type OnLimit string

// The ways to end at the cap.
const (
	LimitFails   OnLimit = ""
	LimitIsOK    OnLimit = "ok"
	LimitStopped OnLimit = "stopped"
	LimitAsks    OnLimit = "ask"
)

// OnIterationError is what a failed iteration means for those after it.
type OnIterationError string

// The ways to go on after a failed iteration.
const (
	IterationFails     OnIterationError = ""
	IterationContinues OnIterationError = "continue"
)

// OnItemError is what a failed item means.
type OnItemError string

// The ways to go on after a failed item.
const (
	// FailFast starts no new item; those under way finish, and the step fails.
	FailFast OnItemError = ""
	// Collect does all items, and the step fails if one did.
	Collect OnItemError = "collect"
	// Continue does all items, and the step completes without those that failed.
	Continue OnItemError = "continue"
)

// Carry is what one iteration hands to the next, where something else is wanted
// than its content, its result and what the judge said.
type Carry struct {
	// None hands on nothing.
	None bool `json:"none,omitempty"`
	// Log hands on a log of what all iterations came to, and nothing else.
	Log *Log `json:"log,omitempty"`
	// NoFeedback leaves out what commands, judges and people said of the last iteration.
	NoFeedback bool `json:"noFeedback,omitempty"`
}

// Log is how the log of a loop is kept.
type Log struct {
	// Extract is which part of an iteration's output is its entry, and Chars how many
	// characters of it.
	Extract Extract `json:"extract,omitempty"`
	Chars   int     `json:"chars"`
	// Summarizer is the name of the agent that says what an iteration came to, where
	// Extract is a summary.
	Summarizer string `json:"summarizer,omitempty"`
	// MaxEntries is how many of the newest log entries the task of an iteration
	// contains.
	MaxEntries int `json:"maxEntries"`
}

// Extract is which part of an output the log keeps.
type Extract string

// The parts.
const (
	ExtractHead    Extract = ""
	ExtractTail    Extract = "tail"
	ExtractSummary Extract = "summary"
)
