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
	// Done describes to the agent what shows that the goal is reached.
	Done []string `json:"done"`
	// Validation is looked at after each iteration, as evidence. It ends nothing.
	Validation []Stop `json:"validation"`
	// Steps are the plan that the file gives, and Planner is the agent that makes one
	// first where there is none.
	Steps   []string `json:"steps,omitempty"`
	Planner string   `json:"planner,omitempty"`
	// Reviewer is the agent that answers at a checkpoint what no evidence does. There is
	// one after so many iterations, or once so much time has passed.
	Reviewer string        `json:"reviewer"`
	Every    int           `json:"every,omitempty"`
	After    time.Duration `json:"after,omitempty"`
	// Timeout is how long a person has to answer what the goal cannot go on without, 0
	// for ever.
	Timeout time.Duration `json:"timeout,omitempty"`
	// FinalAnswer says that the first iteration whose agent gives a final answer ends
	// the loop, whatever the evidence says.
	FinalAnswer bool `json:"finalAnswer,omitempty"`
}

// Checks are all that is looked at after an iteration, in that order: of a goal its
// validation, and then what ends the loop.
func (l *Loop) Checks() []Stop {
	if l.Goal == nil {
		return l.StopWhen
	}
	return slices.Concat(l.Goal.Validation, l.StopWhen)
}
