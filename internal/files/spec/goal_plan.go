package spec

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/machine/goal"
	"github.com/pawlrun/pawl/internal/machine/refine"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// The defaults of a goal.
const (
	goalIterations  = 20
	goalFailures    = 3
	goalCheckpoints = 3
	evidenceTimeout = 2 * time.Minute
)

// plan returns the goal as a loop: iterations of its worker, until all evidence holds.
func (g *Goal) plan() plan.Plan {
	objective := strings.Join(strings.Fields(string(g.Objective)), " ")
	l := &plan.Loop{
		Single: true, Body: plan.Plan{Steps: []plan.Step{{Agent: &plan.Agent{Name: GoalWorker, Result: g.Uses[GoalWorker].ResultSchema != nil}}}},
		Max: goalIterations, ErrorsMax: goalFailures, OnError: plan.IterationContinues, JudgeFailuresMax: goalFailures, OnLimit: plan.LimitStopped,
		Carry: plan.Carry{Log: &plan.Log{Chars: refine.Chars, MaxEntries: refine.MaxEntries}},
		Goal:  &plan.Goal{Objective: objective, Validation: stops(g.Validation), Reviewer: goalReviewer, Every: goalCheckpoints},
	}
	for _, s := range g.Stop {
		l.Max, l.ErrorsMax = cmp.Or(decode.Given(s.MaxIterations), l.Max), cmp.Or(decode.Given(s.Failures), l.ErrorsMax)
		l.Goal.FinalAnswer = l.Goal.FinalAnswer || s.FinalAnswer
	}
	if p := g.Plan; p != nil {
		if l.Goal.Steps = p.Steps; p.Auto {
			l.Goal.Planner = goalPlanner
		}
	}
	if c := g.Checkpoints; c != nil {
		l.Goal.Every, l.Goal.After = c.Every.Iterations, c.Every.Time
	}
	l.StopWhen = stops(g.Done.When)
	if g.Done.Judge != nil {
		l.StopWhen = append(l.StopWhen, plan.Stop{Judge: goalJudge})
	}
	if g.ReviewTimeout != nil {
		l.Goal.Timeout = g.ReviewTimeout.Duration()
	}
	if g.Done.Human {
		l.StopWhen = append(l.StopWhen, plan.Stop{Human: &plan.Human{Prompt: "Is the objective reached? " + objective, Feedback: true, Timeout: l.Goal.Timeout}})
	}
	l.Goal.Done = goal.Names(l.StopWhen)
	return plan.Plan{Name: g.Identity.Name, Refine: true, Steps: []plan.Step{{ID: "goal", Loop: l}}}
}

func stops(all []Evidence) []plan.Stop {
	out := make([]plan.Stop, len(all))
	for i, e := range all {
		if out[i].Expression = e.CEL; e.Command != nil {
			out[i].Command = &plan.Command{Argv: e.Command.Argv, Timeout: cmp.Or(e.Command.Timeout.Length(), evidenceTimeout)}
		}
	}
	return out
}

// goalSchema returns the schema of an answer of one of the goal's agents.
func goalSchema(name string) json.RawMessage {
	switch name {
	case goalPlanner:
		return goal.PlanSchema()
	case goalReviewer:
		return goal.ReviewSchema()
	}
	return json.RawMessage(verdictSchema)
}
