package flow

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/refine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// logged reports whether the tasks of a scope's steps contain the log of the
// loop around them.
func (s *scope) logged() bool { return s.pass != nil && s.pass.of.plan.Carry.Log != nil }

// keepLog adds the result of a pass to the log of a loop, before the pass is checked.
func (m *Machine) keepLog(l *loop, s *scope, end passEnd) {
	l.unlogged = &end
	log := l.plan.Carry.Log
	if log.Summarizer == "" || strings.TrimSpace(end.content) == "" || l.of.stop != nil {
		m.logLearning(l, s, end, "")
		return
	}
	m.consult(l, consultation{
		name: s.key + "/summary", agent: log.Summarizer,
		task: func() string { return refine.SummaryTask(m.fence, m.task, s.pass.index+1, end.content, log.Chars) },
		done: func(d *event.ChildFinished) {
			summary := ""
			if d.Outcome.OK {
				summary = d.Outcome.FinalOutput
			}
			m.logLearning(l, s, end, summary)
		},
	})
}

// logLearning adds the summary of a pass to the log, or a part of the pass's output if
// there is no summary.
func (m *Machine) logLearning(l *loop, s *scope, end passEnd, summary string) {
	log, output := *l.plan.Carry.Log, end.content
	if strings.TrimSpace(summary) != "" {
		log.Extract, output = plan.ExtractHead, summary
	} else if end.error != nil {
		output = cmp.Or(output, "It failed: "+end.error.Message)
	}
	d := event.Progress{
		Step: l.of.id, Number: s.pass.index + 1, Learning: refine.Learning(output, log), Patterns: refine.Patterns(end.content),
	}
	m.record(fmt.Sprint("progress ", d.Number, " ", d.Step), d, func(e event.Data) {
		kept := e.(event.Progress)
		l.log.Add(kept.Number, kept.Learning, kept.Patterns)
		m.passed(l, s, end)
	})
}

// message returns the task of an iteration's agent.
func (m *Machine) message(n *node) string {
	p := n.in.pass
	l := p.of
	it := refine.Iteration{
		Fence: m.fence, Input: m.task, Number: p.index + 1, Of: l.most(), Log: &l.log, MaxEntries: l.plan.Carry.Log.MaxEntries,
	}
	switch {
	case l.goal != nil:
		it.Input = l.goal.Brief(m.fence)
	case !m.cfg.Plan.Refine:
		t := m.material(n)
		if p.index > 0 {
			t.Iteration = 0 // the message ends with the iteration's number
		}
		it.Input = Prompt(t)
	}
	if p.index > 0 && !l.plan.Carry.NoFeedback {
		it.Feedback = feedback(l)
	}
	return it.Message()
}

// feedback returns the reports about the last pass.
func feedback(l *loop) (all []refine.Feedback) {
	end := l.last()
	for _, said := range end.checks {
		title := said.Title
		if said.Reason != "" {
			title += ": " + said.Reason
		}
		all = append(all, refine.Feedback{Title: title, From: said.From, Text: said.Content})
	}
	if j := end.judged; j != nil {
		all = append(all, refine.Feedback{Title: "The judge of the last iteration", From: l.of.id + ".judge", Text: cmp.Or(j.reason, j.content)})
	}
	return all
}

// kindUnchanged is the kind of the end of a loop whose iterations change nothing.
const kindUnchanged = "unchanged"

// refined returns the end of a run that consists of one loop.
func (n *node) refined() event.RunTerminatedBy {
	why := event.RunTerminatedBy{Reason: event.ReasonFinalAnswer}
	switch {
	case n.end.why != nil:
		why = *n.end.why
	case n.error != nil: // the loop's own failure is the reason
		why = event.RunTerminatedBy{Reason: event.Reason(n.error.Class)}
	}
	if why.Reason == event.ReasonStuck { // the loop was stopped, but nothing in it failed
		why.Kind, why.Detail = kindUnchanged, n.error.Message
		return why
	}
	if why.Error = n.error; n.error != nil && n.error.Limit != "" {
		why.Reason, why.Limit, why.LimitRun = event.BudgetReason(n.error.Limit), n.error.Limit, n.error.LimitRun
		if why.LimitRun != "" {
			why.Kind = tree.KindAbove
		}
	}
	return why
}

// refinedOutcome returns the outcome of a run that consists of one loop. At the cap the
// run succeeds if the plan allows that, and its result is the last entry of the log.
func (m *Machine) refinedOutcome(o event.Outcome) event.Outcome {
	n := m.root.steps[0]
	o.Iterations, o.LastOutput, o.Result = n.end.passes, n.content, n.result
	if o.FinalOutput == "" {
		o.FinalOutput = n.content
	}
	if !o.Completed {
		o.NextSafeAction = nextOfLoop(m.Terminated)
		if n.step().Loop.Goal != nil {
			o.NextSafeAction = nextOfGoal(m.Terminated)
		}
	}
	if o.Reason == event.ReasonMaxIterations && o.Error == nil {
		o.OK = n.step().Loop.OnLimit == plan.LimitIsOK
	}
	return o
}

// nextOfLoop returns advice about a loop that did not succeed.
func nextOfLoop(end *event.RunTerminatedBy) string {
	const again = ", and start the loop again."
	switch r := end.Reason; {
	case strings.HasPrefix(string(r), string(event.BudgetReason(""))):
		return "Check what the iterations used; if it was worth it, raise " + end.Limit + again
	case r == event.ReasonMaxIterations:
		return "Read what the last iteration said; raise loop.maxIterations or change what ends the loop" + again
	case r == event.ReasonStuck:
		return "Read what the last iterations said; change the task or the prompt, or raise stuck_after if they did get on" + again
	case r == event.ReasonCancelled:
		return "Nothing is running; start the loop again if it is still wanted."
	case r == event.ReasonRejected:
		return "Change the task by what the reviewer said" + again
	case r == event.ReasonToolUnavailable:
		return "Install what is missing, or change the command that ends the loop" + again
	case r == event.ReasonConditionError:
		return "Correct the expression in stop_when" + again
	case r == event.ReasonJudgeUnavailable:
		return "Read why the judge gave no verdict; fix that" + again
	case r == event.ReasonImpossible:
		return "Read why the judge calls the task impossible; change the task" + again
	}
	return "Read why the last iteration failed; fix the cause" + again
}
