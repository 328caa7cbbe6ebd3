package rondo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
)

// Loop is the state of the loop of an agent: the running one, or else the last
// one.
type Loop struct {
	Active bool   `json:"active"`
	Run    string `json:"run,omitempty"`
	State  *State `json:"state,omitempty"`
	// Review is the question of the loop.
	Review *Review `json:"review,omitempty"`

	// step is the loop's step in its plan.
	step string
}

// State is RondoFlow's state of a loop. An empty Status means that its events do not
// say it: the loop runs, or waits for a person.
type State struct {
	Iteration     int      `json:"iteration"`
	MaxIterations int      `json:"maxIterations"`
	Criteria      Criteria `json:"criteria"`
	Status        string   `json:"status"`
	ProgressLog   []string `json:"progressLog"`
	// SessionID is always empty, because iterations share no sessions.
	SessionID string `json:"sessionId"`
}

// Criteria is what ends a loop.
type Criteria struct {
	Type  string `json:"type"`
	Value string `json:"value,omitempty"`
}

// Review is a question to a person about an iteration. LoopID contains the run,
// so that a late decision does not apply to the next loop.
type Review struct {
	LoopID    string `json:"loopId"`
	Iteration int    `json:"iteration"`
	Output    string `json:"output"`
}

// NewLoop returns the state of a loop before its first event.
func NewLoop(run string, active bool) Loop {
	return Loop{Active: active, Run: run, State: &State{ProgressLog: []string{}}}
}

// Apply applies one event of a loop.
func (n *Loop) Apply(e *event.Event) error {
	switch d := e.Data.(type) {
	case event.RunStarted:
		var c flow.Config
		if err := json.Unmarshal(d.Config, &c); err != nil || len(c.Plan.Steps) == 0 || c.Plan.Steps[0].Loop == nil {
			return fmt.Errorf("rondo: run %s has no loop: %w", n.Run, cmp.Or(err, journal.ErrNotFound))
		}
		l := c.Plan.Steps[0].Loop
		n.step, n.State.MaxIterations, n.State.Criteria = c.Plan.Steps[0].ID, l.Max, criteriaOf(l.StopWhen)
	case event.ChildStarted:
		if d.Step == fmt.Sprintf("%s.%d", n.step, n.State.Iteration) { // the first attempt at the next iteration
			n.State.Iteration++
		}
	case event.Iteration:
		n.State.Iteration, n.State.MaxIterations = d.Number, cmp.Or(d.MaxIterations, n.State.MaxIterations)
	case event.Progress:
		n.State.ProgressLog = append(n.State.ProgressLog, d.Learning)
	case event.ReviewRequested:
		n.Review = &Review{n.Run + "/" + d.LoopID, d.Number, d.Output}
	case event.ReviewResolved:
		n.Review = nil
	case event.RunCompleted:
		n.Review = nil
		n.State.Status = "failed"
		if event.LoopCompleted(d.Outcome) {
			n.State.Status = "completed"
		}
	}
	return nil
}

// criteriaOf returns the first stop condition in RondoFlow's terms, if it has one.
func criteriaOf(stops []plan.Stop) Criteria {
	if len(stops) == 0 {
		return Criteria{Type: "max_iterations"}
	}
	switch s := stops[0]; {
	case s.Regex != "":
		return Criteria{"regex", s.Regex}
	case s.Command != nil:
		return Criteria{"test_pass", strings.Join(s.Command.Argv, " ")}
	case s.Human != nil:
		return Criteria{Type: "manual"}
	default:
		return Criteria{Type: s.Kind()}
	}
}
