package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/eval"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// consultation is a question to an agent about a loop. name is the name of the child
// that answers it.
type consultation struct {
	name, agent string
	task        func() string
	done        func(*event.ChildFinished)
}

// consult asks an agent about a loop as soon as concurrency allows.
func (m *Machine) consult(l *loop, c consultation) {
	l.consulting = &c
	m.markStartable(l.of)
	m.wake(l.of.in)
}

// beginConsulting starts the consulted agent.
func (m *Machine) beginConsulting(l *loop) {
	c := *l.consulting
	l.consulting, l.judge, l.judgeOf = nil, c.name, c.agent
	m.busy(l.of.in, c.agent, 1)
	ask := func() machine.StartChild {
		return machine.StartChild{ID: c.name, Kind: KindAgent, Name: c.agent, Step: l.of.id, Taint: m.takesIn(l.of).With(l.taint), Input: task(c.task(), nil)}
	}
	var begin func()
	begin = func() {
		m.requests.add("child "+c.name, func() []machine.Action { return []machine.Action{ask()} }, func(d event.Data) {
			m.under[d.(event.ChildStarted).Child] = underWay{ask, begin, func(d event.ChildFinished) {
				m.Forget(c.name)
				m.judgeLeft(l)
				l.taint = l.taint.With(d.Taint)
				if l.of.stop != nil {
					m.endStopped(l)
					return
				}
				c.done(&d)
			}}
		})
	}
	begin()
}

// judgeName returns the name of the next judge of a pass. Each judge of a loop is a
// separate child.
func (l *loop) judgeName(s *scope) string {
	name := s.key + "/judge"
	if slices.ContainsFunc(l.plan.Checks()[:l.asked], func(stop plan.Stop) bool { return stop.Judge != "" }) {
		name = fmt.Sprint(name, "/", l.asked)
	}
	return name
}

// judgeLeft handles the end of a consultation.
func (m *Machine) judgeLeft(l *loop) {
	m.busy(l.of.in, l.judgeOf, -1)
	l.judge, l.judgeOf = "", ""
}

// askJudge asks a judge to evaluate the pass that just ended.
func (m *Machine) askJudge(l *loop, agent string) {
	s := l.finished
	m.consult(l, consultation{
		name: l.judgeName(s), agent: agent, task: func() string { return m.judgeTask(l, s) },
		done: func(d *event.ChildFinished) { m.judgeDone(l, s, d) },
	})
}

// judgeTask returns the task of a pass's judge.
func (m *Machine) judgeTask(l *loop, s *scope) string {
	if e := l.plan.Checks()[l.asked].Eval; e != nil {
		q, _ := e.Ask(m.extract(s), m.fence)
		return q.Task
	}
	return JudgePrompt(m.evidence(l, s))
}

// extract returns an ended pass in the form that evaluators use.
func (m *Machine) extract(s *scope) eval.Extract {
	x := s.steps[0].extract
	x.Text = s.pass.of.passes[s.pass.index].content
	return x
}

// score converts a judge's answer to a verdict by means of an evaluator.
func score(e *eval.Evaluator, x eval.Extract, answer json.RawMessage) event.JudgeVerdict {
	v := event.JudgeVerdict{Verdict: event.VerdictNotDone, Result: answer}
	r, err := e.Read(x, answer)
	switch {
	case err != nil:
		v.Failed, v.Result = true, nil
	case r.Verdict != "":
		v.Verdict, v.Reason = r.Verdict, r.Reason
	case r.Pass:
		v.Verdict, v.Reason = event.VerdictDone, r.Reason
	default:
		v.Reason = r.Reason
	}
	return v
}

func (m *Machine) judgeDone(l *loop, s *scope, d *event.ChildFinished) {
	n := l.of
	v := verdict(d.Outcome.Result)
	if e := l.plan.Checks()[l.asked].Eval; e != nil {
		v = score(e, m.extract(s), d.Outcome.Result)
	}
	v.Step, v.Number, v.Child = n.id, s.pass.index+1, d.Child
	said := &judged{content: d.Outcome.FinalOutput, reason: v.Reason, result: v.Result}
	n.request = fmt.Sprint("verdict ", v.Number, " ", n.id)
	m.record(n.request, v, func(e event.Data) {
		n.request = ""
		l.last().judged = said
		m.judgement(l, s, e.(event.JudgeVerdict))
	})
}

// judgement handles a verdict. A missing verdict does not end the loop until too many
// are missing in a row.
func (m *Machine) judgement(l *loop, s *scope, v event.JudgeVerdict) {
	if v.Failed {
		l.missed++
	} else {
		l.missed = 0
	}
	switch most := l.plan.JudgeFailuresMax; {
	case v.Failed && most > 0 && l.missed >= most:
		m.endLoop(l, &event.Failure{Class: string(event.ReasonJudgeUnavailable), Message: fmt.Sprintf("the judge gave no verdict %d times in a row", l.missed)})
	case v.Verdict == event.VerdictBlockedOnHuman && l.goal != nil:
		m.block(l, v.Reason)
	case v.Verdict == event.VerdictImpossible:
		m.endLoop(l, &event.Failure{Class: string(event.ReasonImpossible), Message: v.Reason})
	default:
		m.checked(l, s, l.asked, v.Verdict == event.VerdictDone && !v.Failed, v.Reason)
	}
}

// verdict parses a judge's result: a verdict, or a boolean that reports whether the
// work is done.
func verdict(result json.RawMessage) event.JudgeVerdict {
	var said struct {
		Done    *bool         `json:"done"`
		Verdict event.Verdict `json:"verdict"`
		Reason  string        `json:"reason"`
	}
	v := event.JudgeVerdict{Verdict: event.VerdictNotDone, Failed: true}
	if len(result) == 0 || json.Unmarshal(result, &said) != nil {
		return v
	}
	v.Result, v.Reason = result, said.Reason
	switch said.Verdict {
	case event.VerdictDone, event.VerdictNotDone, event.VerdictImpossible, event.VerdictBlockedOnHuman:
		v.Verdict, v.Failed = said.Verdict, false
		return v
	}
	if said.Done != nil {
		v.Failed = false
		if *said.Done {
			v.Verdict = event.VerdictDone
		}
	}
	return v
}

// nextSafeAction returns a sentence that explains how to continue a workflow that did
// not complete.
func nextSafeAction(end *event.RunTerminatedBy) string {
	const (
		again = ", and retry the run, which keeps what completed."
		anew  = ", and start the workflow again; a retry of this run keeps its file."
	)
	step, class := "the step "+end.Step, ""
	if end.Error != nil {
		class = end.Error.Class
	}
	switch r := end.Reason; {
	case end.Limit == planTimeout:
		return "Check which steps took the time; raise options.timeout, and start the workflow again."
	case strings.HasPrefix(string(r), string(event.BudgetReason(""))):
		return "Check what was used; if it was worth it, start the workflow again with a higher " + end.Limit + "."
	case r == event.ReasonCancelled:
		return "Nothing is running; start the workflow again, or retry the run, which keeps what completed."
	case r == event.ReasonRejected:
		return "Decide sooner, and start the workflow again."
	case r == event.ReasonMaxIterations, class == string(event.ReasonMaxIterations):
		return "Read what the last iteration of " + step + " said; raise its maxIterations or change what ends the loop" + anew
	case r == event.ReasonConditionError:
		return "Correct the expression of " + step + " in the file, and start the workflow again."
	case r == event.ReasonJudgeUnavailable:
		return "Read why the judge of " + step + " gave no verdict; fix that" + again
	case r == event.ReasonImpossible:
		return "Read why the judge calls the task of " + step + " impossible; change the task, and start the workflow again."
	case end.Error == nil:
		return "Read what happened to " + step + again
	case class == classTimeout:
		return "Raise the timeout of " + step + " or give it less to do" + anew
	case class == classNoResult:
		return "Say in the instructions of " + step + " that it ends with submit_result, or simplify its resultSchema" + anew
	}
	return "Read why " + step + " failed; fix the cause" + again
}
