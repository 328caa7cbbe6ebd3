package plan

import (
	"slices"
	"time"
)

// Goal makes a loop one that works towards a goal: the task of each iteration
// contains the objective and the plan, and validation comes before the loop's
// end.
type Goal struct {
	Objective string `json:"objective"`
	// Done describes to the agent the evidence that the goal is reached.
	Done []string `json:"done"`
	// Validation is checked after each iteration, as evidence. It ends nothing.
	Validation []Stop `json:"validation"`
	// Steps is the plan in the file; without it Planner is the agent that writes one
	// first.
	Steps   []string `json:"steps,omitempty"`
	Planner string   `json:"planner,omitempty"`
	// Reviewer is the agent that answers the questions of a checkpoint that no evidence
	// answers. There is a checkpoint after a number of iterations, or after a time.
	Reviewer string        `json:"reviewer"`
	Every    int           `json:"every,omitempty"`
	After    time.Duration `json:"after,omitempty"`
	// Timeout bounds the time for a person's answer to what the goal needs, 0 for no
	// limit.
	Timeout time.Duration `json:"timeout,omitempty"`
	// FinalAnswer reports that the first iteration whose agent gives a final answer
	// ends the loop, whatever the evidence is.
	FinalAnswer bool `json:"finalAnswer,omitempty"`
}

// Checks returns all checks after an iteration, in order: the validation of a goal, and
// then the conditions that end the loop.
func (l *Loop) Checks() []Stop {
	if l.Goal == nil {
		return l.StopWhen
	}
	return slices.Concat(l.Goal.Validation, l.StopWhen)
}
