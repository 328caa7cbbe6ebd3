package plan

import (
	"encoding/json"
	"math"
	"time"

	"github.com/pawlrun/pawl/internal/rules/eval"
)

// Loop is a graph that is repeated: once for each item, in parallel, or until a
// condition holds. A step's loop, a team that iterates, a refinement loop and a goal
// all become one.
type Loop struct {
	Body Plan `json:"body"`
	// Single reports that the body is the step itself: its only step has no id of its
	// own.
	Single bool `json:"single,omitempty"`
	// Items are the items, one iteration for each; nil if iterations are sequential.
	Items *Items `json:"items,omitempty"`
	// Max bounds sequential iterations.
	Max int `json:"max,omitempty"`
	// StopWhen is checked in order after each iteration, before the cap; the first
	// condition that holds ends the loop.
	StopWhen []Stop `json:"stopWhen,omitempty"`
	// Delay is the time between two iterations.
	Delay time.Duration `json:"delay,omitempty"`
	// Output sets the loop's content.
	Output Output `json:"output,omitempty"`
	// OnLimit sets the result if none of StopWhen held within Max.
	OnLimit OnLimit `json:"onLimit,omitempty"`
	// OnError sets the effect of a failed sequential iteration.
	OnError OnIterationError `json:"onError,omitempty"`
	// ErrorsMax bounds consecutive failed iterations, if a failed one does not end the
	// loop; 0 for no limit.
	ErrorsMax int `json:"errorsMax,omitempty"`
	// JudgeFailuresMax bounds consecutive missing verdicts, 0 for no limit.
	JudgeFailuresMax int   `json:"judgeFailuresMax,omitempty"`
	Carry            Carry `json:"carry,omitzero"`
	// StuckAfter bounds consecutive iterations that change neither a file of the
	// workspace nor the number of passing tests, 0 for no limit.
	StuckAfter int `json:"stuckAfter,omitempty"`
	// OnlyAnswers reports that the agent of an iteration can change no file, so that an
	// answer that differs from the previous one counts as a change for StuckAfter.
	OnlyAnswers bool `json:"onlyAnswers,omitempty"`
	// Goal makes the loop work towards a goal: all of StopWhen must then hold, each
	// checked only if the earlier ones hold. Nil for other loops.
	Goal *Goal `json:"goal,omitempty"`
}

// Items are the items of a loop.
type Items struct {
	// Static are the items, unless Expression is not empty; it is then evaluated once.
	Static     []json.RawMessage `json:"static,omitempty"`
	Expression string            `json:"expression,omitempty"`
	// Max bounds the items.
	Max int `json:"max,omitempty"`
	// Concurrency bounds concurrent items, 0 for all.
	Concurrency int `json:"concurrency,omitempty"`
	// OnError sets the effect of a failed item on the others.
	OnError OnItemError `json:"onError,omitempty"`
	// MinSuccess is the number of items that must succeed, MinSuccessPercent the
	// percentage; 0 for no requirement.
	MinSuccess        int     `json:"minSuccess,omitempty"`
	MinSuccessPercent float64 `json:"minSuccessPercent,omitempty"`
}

// Least returns how many of a number of items must succeed.
func (i *Items) Least(of int) int {
	return max(i.MinSuccess, int(math.Ceil(i.MinSuccessPercent*float64(of)/100)))
}

// Stop is a condition that ends a loop. Exactly one of Expression, Judge, Regex,
// Command, Eval and Human is set, except that an Eval may have a Judge.
type Stop struct {
	// Expression must evaluate to true.
	Expression string `json:"expression,omitempty"`
	// Judge is the name of the agent that judges each iteration.
	Judge string `json:"judge,omitempty"`
	// Regex must match the iteration's content, ignoring case.
	Regex string `json:"regex,omitempty"`
	// Command must exit with 0.
	Command *Command `json:"command,omitempty"`
	// Eval must pass the iteration. If it asks a model, Judge is the agent to ask.
	Eval *eval.Evaluator `json:"eval,omitempty"`
	// Human must approve the iteration.
	Human *Human `json:"human,omitempty"`
}

// Kind returns the name of the condition in the reason of a run's end.
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

// Human is a review by a person of each iteration that passed the earlier conditions.
type Human struct {
	// Prompt is the question to the person, in addition to the output.
	Prompt string `json:"prompt,omitempty"`
	// Timeout is how long a review waits before it ends the run, 0 for no limit.
	Timeout time.Duration `json:"timeout,omitempty"`
	// GoesOn reports that an approval ends nothing, and Feedback that a rejection
	// starts another iteration instead of failing the loop.
	GoesOn   bool `json:"goesOn,omitempty"`
	Feedback bool `json:"feedback,omitempty"`
}

// Output selects the content of a loop.
type Output string

// The values of Output.
const (
	// Last is the content of the last iteration.
	Last Output = ""
	// Cumulative is the content of all iterations, with the judges' verdicts.
	Cumulative Output = "cumulative"
)

// OnLimit is the result of a loop that reached its cap before a condition held.
type OnLimit string

// The values of OnLimit.
const (
	LimitFails   OnLimit = ""
	LimitIsOK    OnLimit = "ok"
	LimitStopped OnLimit = "stopped"
	LimitAsks    OnLimit = "ask"
)

// OnIterationError is the effect of a failed iteration on later ones.
type OnIterationError string

// The values of OnIterationError.
const (
	IterationFails     OnIterationError = ""
	IterationContinues OnIterationError = "continue"
)

// OnItemError is the effect of a failed item on the others.
type OnItemError string

// The values of OnItemError.
const (
	// FailFast starts no new item; those in progress finish, and the step fails.
	FailFast OnItemError = ""
	// Collect runs all items; the step fails if one failed.
	Collect OnItemError = "collect"
	// Continue runs all items; the step completes without those that failed.
	Continue OnItemError = "continue"
)

// Carry selects what one iteration passes to the next, instead of its content, its
// result and the judges' verdicts.
type Carry struct {
	// None passes nothing.
	None bool `json:"none,omitempty"`
	// Log passes only a log of all iterations.
	Log *Log `json:"log,omitempty"`
	// NoFeedback omits the results of commands, judges and people about the last
	// iteration.
	NoFeedback bool `json:"noFeedback,omitempty"`
}

// Log configures the log of a loop.
type Log struct {
	// Extract selects the part of an iteration's output that is its entry, and Chars
	// its length in characters.
	Extract Extract `json:"extract,omitempty"`
	Chars   int     `json:"chars"`
	// Summarizer is the name of the agent that summarizes an iteration, if Extract is a
	// summary.
	Summarizer string `json:"summarizer,omitempty"`
	// MaxEntries is how many of the newest log entries the task of an iteration
	// contains.
	MaxEntries int `json:"maxEntries"`
}

// Extract selects the part of an output that the log keeps.
type Extract string

// The parts.
const (
	ExtractHead    Extract = ""
	ExtractTail    Extract = "tail"
	ExtractSummary Extract = "summary"
)
