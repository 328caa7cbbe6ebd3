package spec

import (
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// roundsID is the step that holds the rounds of a team.
const roundsID = "rounds"

// Plan returns the plan of a file that starts other runs. Each member of a team is
// a step, and each step receives the team's task.
func (a *Agent) Plan() plan.Plan {
	if a.Loops() {
		return a.loopPlan()
	}
	c := a.Composite
	p := plan.Plan{Name: a.Identity.Name, Team: true}
	switch members := c.members(); c.Strategy {
	case "sequential":
		p.Steps = a.inTurn(members)
		a.untilMentioned(p.Steps)
	case "parallel":
		p.Steps = sideBySide(members)
	case "debate":
		p.Steps = []plan.Step{a.rounds(sideBySide(members), plan.Cumulative)}
	case "iterative":
		p.Steps = []plan.Step{a.rounds(a.inTurn(members), plan.Last)}
	}
	if last, there := c.aggregator(); there {
		p.Steps = append(p.Steps, stepOf(last, ids(p.Steps)))
	}
	return p
}

func stepOf(s Subagent, after []string) plan.Step {
	return plan.Step{ID: s.Name(), DependsOn: after, Agent: &plan.Agent{Name: s.Name()}}
}

func ids(steps []plan.Step) []string {
	all := make([]string, len(steps))
	for i, s := range steps {
		all[i] = s.ID
	}
	return all
}

// inTurn runs the members one after the other; each receives the output of all earlier
// ones.
func (*Agent) inTurn(members []Subagent) []plan.Step {
	var steps []plan.Step
	for _, s := range members {
		steps = append(steps, stepOf(s, ids(steps)))
	}
	return steps
}

func sideBySide(members []Subagent) []plan.Step {
	steps := make([]plan.Step, len(members))
	for i, s := range members {
		steps[i] = stepOf(s, nil)
	}
	return steps
}

// rounds repeats steps until a condition ends it, up to the team's maximum.
func (a *Agent) rounds(steps []plan.Step, output plan.Output) plan.Step {
	l := &plan.Loop{Body: plan.Plan{Steps: steps}, Max: decode.Given(a.Composite.MaxRounds), OnLimit: plan.LimitIsOK, Output: output}
	if t := a.Composite.Terminate; t != "" {
		l.StopWhen = append(l.StopWhen, plan.Stop{Expression: t})
	}
	if t := a.Termination; t != nil {
		if t.MaxTurns != nil {
			l.Max = min(l.Max, (*t.MaxTurns-len(a.Offers())+len(steps))/len(steps))
		}
		if t.TextMention != "" {
			l.StopWhen = append(l.StopWhen, plan.Stop{Expression: mentions(steps, t.TextMention)})
		}
	}
	return plan.Step{ID: roundsID, Loop: l}
}

// untilMentioned skips the steps after one whose output contains a text.
func (a *Agent) untilMentioned(steps []plan.Step) {
	if a.Termination == nil || a.Termination.TextMention == "" {
		return
	}
	for i := 1; i < len(steps); i++ {
		steps[i].Condition = "!(" + mentions(steps[:i], a.Termination.TextMention) + ")"
	}
}

// mentions returns an expression that reports whether the output of one of the steps
// contains a text.
func mentions(steps []plan.Step, text string) string {
	// A JSON string is also a string of the expression language.
	quoted, _ := json.Marshal(text)
	all := make([]string, len(steps))
	for i, s := range steps {
		all[i] = "steps." + s.ID + ".content.contains(" + string(quoted) + ")"
	}
	return strings.Join(all, " || ")
}
