package flow

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/goal"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// goalState is the additional state of a loop that pursues a goal.
type goalState struct {
	goal.State
	// checkpoints counts the checkpoints; the last one was at since.
	checkpoints int
	since       time.Time
	// missed is the number of consecutive missing reviews.
	missed int
	// blocked is the id of the question that blocks the goal.
	blocked string
}

// startGoal begins a loop that pursues a goal, with a planning step if the goal needs
// one.
func (m *Machine) startGoal(l *loop) {
	g := l.plan.Goal
	l.goal = &goalState{State: goal.State{Goal: g, Input: m.task, Plan: g.Steps}, since: m.Now}
	if m.goalLoop = l; g.Planner == "" || len(g.Steps) > 0 {
		m.nextPass(l)
		return
	}
	m.consult(l, consultation{
		name: l.of.name() + "/plan", agent: g.Planner, task: func() string { return l.goal.PlanTask(m.fence) },
		done: func(d *event.ChildFinished) {
			point := event.Checkpoint{Label: "plan", Child: d.Child, Plan: encodedPlan(goal.ReadPlan(d.Outcome.Result))}
			m.keep(l, point, func(event.Checkpoint) { m.nextPass(l) })
		},
	})
}

// keep journals a checkpoint. Its plan replaces the current one.
func (m *Machine) keep(l *loop, d event.Checkpoint, then func(event.Checkpoint)) {
	d.Step = l.of.id
	l.of.request = "checkpoint " + d.Label
	m.record(l.of.request, d, func(e event.Data) {
		kept := e.(event.Checkpoint)
		l.of.request = ""
		var steps []string
		if json.Unmarshal(kept.Plan, &steps) == nil && !slices.Equal(steps, l.goal.Plan) {
			l.goal.Plan, l.goal.Made = steps, true
		}
		then(kept)
	})
}

func encodedPlan(steps []string) json.RawMessage {
	if len(steps) == 0 {
		return nil
	}
	raw, _ := json.Marshal(steps)
	return raw
}

// checked folds the result of the i-th check of a pass. For other loops, the first
// condition that holds ends the loop. A goal ends when all of its conditions hold; a
// validation that fails does not prevent that.
func (m *Machine) checked(l *loop, s *scope, i int, holds bool, why string) {
	g := l.plan.Goal
	if g == nil {
		if holds {
			m.met(l, i)
		} else {
			m.consider(l, s, i+1)
		}
		return
	}
	checks := l.plan.Checks()
	done := i >= len(g.Validation)
	e := goal.Evidence{What: goal.Name(&checks[i]), Holds: holds, Reason: why, Done: done}
	l.goal.Evidence = append(l.goal.Evidence, e)
	if end := l.last(); checks[i].Expression != "" && !holds {
		end.checks = append(end.checks, Section{Title: "The check " + e.What + " does not hold"})
	}
	switch {
	case done && !holds:
		m.unfinished(l)
	case i == len(checks)-1:
		l.of.end.why = &event.RunTerminatedBy{Reason: event.ReasonConditionMet, Kind: kindDone}
		m.endLoop(l, nil)
	default:
		m.consider(l, s, i+1)
	}
}

// kindDone is the kind of the condition that ends a goal that was reached.
const kindDone = "done"

// known reuses the result of a goal's check in the same pass, and reports whether there
// is one.
func (m *Machine) known(l *loop, s *scope, i int) bool {
	if l.goal == nil {
		return false
	}
	name := goal.Name(&l.plan.Checks()[i])
	at := slices.IndexFunc(l.goal.Evidence, func(e goal.Evidence) bool { return e.What == name })
	if at < 0 {
		return false
	}
	e := l.goal.Evidence[at]
	m.checked(l, s, i, e.Holds, e.Reason)
	return true
}

// hopeless returns the classes of failures that would recur in another iteration.
func hopeless() []event.Reason {
	return []event.Reason{event.ReasonPolicyDenied, event.ReasonToolUnavailable, event.ReasonRejected}
}

// ofGoal handles the end of a pass of a goal. It checks the result even of a failed
// pass, because the evidence does not depend on how the agent ended.
func (m *Machine) ofGoal(l *loop, s *scope, failure *event.Failure) {
	l.goal.Evidence = nil
	if failure == nil {
		l.errors = 0
		m.consider(l, s, 0)
		return
	}
	l.errors++
	if failure.Limit != "" || slices.Contains(hopeless(), event.Reason(failure.Class)) {
		m.endLoop(l, failure)
		return
	}
	m.consider(l, s, 0)
}

// unfinished continues a goal that a pass did not reach.
func (m *Machine) unfinished(l *loop) {
	g, last := l.plan.Goal, l.last()
	switch {
	case last.error != nil && l.plan.ErrorsMax > 0 && l.errors >= l.plan.ErrorsMax:
		m.endLoop(l, &event.Failure{Class: string(event.ReasonRepeatedFailure), Message: fmt.Sprintf(
			"%d iterations failed in a row, the last with: %s", l.errors, last.error.Message)})
	case g.FinalAnswer && last.error == nil:
		m.endLoop(l, nil)
	case l.next < l.most() && (g.Every > 0 && l.next%g.Every == 0 || g.After > 0 && m.Now.Sub(l.goal.since) >= g.After):
		m.checkpoint(l)
	default:
		m.another(l)
	}
}

// checkpoint asks the reviewer the questions that no evidence answers, and records all
// answers.
func (m *Machine) checkpoint(l *loop) {
	l.goal.checkpoints++
	l.goal.since = m.Now
	facts := func() goal.Facts {
		return goal.Facts{
			State: &l.goal.State, Iteration: l.next, Of: l.most(), Limits: m.Limits, Spent: m.Spent(),
			Entries: len(l.log.Entries), Told: min(len(l.log.Entries), l.plan.Carry.Log.MaxEntries),
		}
	}
	m.consult(l, consultation{
		name: fmt.Sprintf("%s/checkpoint/%d", l.of.name(), l.goal.checkpoints), agent: l.plan.Goal.Reviewer,
		task: func() string { now := facts(); return now.ReviewTask(m.fence, l.left()) },
		done: func(d *event.ChildFinished) {
			review, now := goal.ReadReview(d.Outcome.Result), facts()
			point := event.Checkpoint{
				Label: fmt.Sprintf("checkpoint %d", l.goal.checkpoints), Number: l.next, Child: d.Child, Plan: encodedPlan(l.goal.Plan), Questions: now.Questions(review),
			}
			if review != nil {
				point.Verdict = review.Verdict
				if len(review.Plan) > 0 {
					point.Plan = encodedPlan(review.Plan)
				}
			}
			m.keep(l, point, func(kept event.Checkpoint) { m.reviewedAt(l, kept) })
		},
	})
}

// left describes the results of the iterations for the reviewer.
func (l *loop) left() string {
	from := max(0, len(l.log.Entries)-l.plan.Carry.Log.MaxEntries)
	var lines []string
	for _, e := range l.log.Entries[from:] {
		lines = append(lines, fmt.Sprintf("Iteration %d: %s", e.Number, e.Learning))
	}
	text, note := newest(strings.Join(lines, "\n"), MostOfOne)
	return note + text
}

// reviewedAt acts on the verdict of a checkpoint.
func (m *Machine) reviewedAt(l *loop, d event.Checkpoint) {
	switch most := l.plan.JudgeFailuresMax; d.Verdict {
	case event.VerdictImpossible:
		m.endLoop(l, &event.Failure{Class: string(event.ReasonImpossible), Message: d.Answer(event.AskObjective)})
	case event.VerdictBlockedOnHuman:
		l.goal.missed = 0
		m.block(l, d.Answer(event.AskHuman))
	case "":
		if l.goal.missed++; most > 0 && l.goal.missed >= most {
			m.endLoop(l, &event.Failure{Class: string(event.ReasonJudgeUnavailable), Message: fmt.Sprintf("the reviewer gave no answer %d times in a row", l.goal.missed)})
			return
		}
		m.another(l)
	default:
		l.goal.missed = 0
		m.another(l)
	}
}

// receiveMessage folds a message to the run. It unblocks a goal that waits for one.
func (m *Machine) receiveMessage(d *event.InputReceived) {
	l := m.goalLoop
	if l == nil || strings.TrimSpace(d.Text) == "" {
		return
	}
	l.goal.Messages = append(l.goal.Messages, d.Text)
	if l.goal.blocked != "" && l.of.phase == working && l.of.stop == nil && m.Terminated == nil {
		m.requests.drop("goal " + l.goal.blocked)
		l.goal.blocked = ""
		m.another(l)
	}
}

// block asks a person for something without which the goal cannot continue.
func (m *Machine) block(l *loop, question string) {
	id := fmt.Sprintf("goal-%d", l.next)
	d := event.GoalBlocked{ID: id, Step: l.of.id, Number: l.next, Asks: question, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(id+"\n"+question)))}
	if lasts := l.plan.Goal.Timeout; lasts > 0 {
		until := m.Now.Add(lasts)
		d.ExpiresAt, d.OnExpiry = &until, event.ExpiryStops
	}
	l.goal.blocked = id
	m.requests.add("goal "+id, func() []machine.Action { return m.Ask(d) }, nil)
}

// unblock withdraws the question of a goal that ends.
func (m *Machine) unblock(l *loop) {
	if l.goal == nil || l.goal.blocked == "" {
		return
	}
	id := l.goal.blocked
	l.goal.blocked = ""
	m.requests.drop("goal " + id)
	if asked := m.Withdraw(id, notWanted); len(asked) > 0 {
		m.requests.add("goal "+id, func() []machine.Action { return asked }, nil)
	}
}

// cannotShow reports whether a check can never hold, because its command was refused or
// its program does not exist. A program in the workspace does not count, because the
// agent may still create it.
func cannotShow(d *event.CommandFinished, c *plan.Command) bool {
	return d.ErrorType == event.ErrorRejected || d.ErrorType == event.ErrorNotStarted && !strings.Contains(c.Argv[0], "/")
}

// refusal returns the failure of a loop whose check was refused or cannot run. If the
// loop is the whole run, the failure also gives the run's reason.
func (m *Machine) refusal(d *event.CommandFinished) *event.Failure {
	f := d.Failure()
	if !m.cfg.Plan.Refine {
		return f
	}
	switch d.ErrorType {
	case event.ErrorDenied:
		f.Class = string(event.ReasonPolicyDenied)
	case event.ErrorNotStarted, event.ErrorUnavailable:
		f.Class = string(event.ReasonToolUnavailable)
	}
	return f
}

// nextOfGoal returns advice about a goal that was not reached.
func nextOfGoal(end *event.RunTerminatedBy) string {
	switch end.Reason {
	case event.ReasonMaxIterations:
		return "Read the last checkpoint; raise max_iterations in stop or change the plan, and start the goal again."
	case event.ReasonImpossible:
		return "Read why the objective cannot be reached; change it, and start the goal again."
	case event.ReasonConditionError:
		return "Correct the expression in done or validation, and start the goal again."
	case event.ReasonToolUnavailable:
		return "Install what is missing, or change the check that needs it, and start the goal again."
	}
	return strings.ReplaceAll(nextOfLoop(end), "the loop", "the goal")
}
