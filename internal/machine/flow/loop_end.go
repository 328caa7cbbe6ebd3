package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// loopEnd describes how a loop ended.
type loopEnd struct {
	passes int
	// why is the stop condition that held, or the cap; nil if neither ended the loop.
	why *event.RunTerminatedBy
}

// consider evaluates the stop conditions after a pass, starting at index i.
func (m *Machine) consider(l *loop, s *scope, i int) {
	n, checks := l.of, l.plan.Checks()
	switch {
	case i == len(checks):
		m.another(l)
		return
	case m.known(l, s, i):
		return
	}
	id := fmt.Sprintf("%s/%d", s.key, i)
	next := func(d event.ConditionEvaluated) {
		if holds, err := truth(d); err != "" {
			m.endLoop(l, conditionError(d.Expression, err))
		} else {
			m.checked(l, s, i, holds, "")
		}
	}
	switch stop := &checks[i]; {
	case stop.Expression != "":
		m.evaluate(n, id, stop.Expression, func() json.RawMessage { return m.variables(s) }, next)
	case stop.Regex != "":
		m.decide(n, id, stop.Regex, func() (bool, error) {
			re, err := regexp.Compile("(?i)" + stop.Regex)
			return err == nil && re.MatchString(l.last().content), err
		}, next)
	case stop.Eval != nil && stop.Judge == "":
		m.decide(n, id, stop.Eval.String(), func() (bool, error) {
			r, err := stop.Eval.Read(m.extract(s), nil)
			return r.Pass, err
		}, next)
	case stop.Judge != "":
		l.asked, l.finished = i, s
		m.askJudge(l, stop.Judge)
	case stop.Human != nil:
		m.review(l, s, i)
	default:
		l.running, l.asked, l.finished = stop, i, s
		m.markStartable(n)
		m.wake(n.in)
	}
}

// decide evaluates a condition within the machine and records the result.
func (m *Machine) decide(n *node, id, expression string, holds func() (bool, error), then func(event.ConditionEvaluated)) {
	d := event.ConditionEvaluated{ID: id, Step: n.id, Expression: expression}
	if held, err := holds(); err != nil {
		d.Error = err.Error()
	} else {
		d.Value, _ = json.Marshal(held)
	}
	n.request = "evaluate " + id
	m.record(n.request, d, func(d event.Data) { then(d.(event.ConditionEvaluated)) })
}

// met ends a loop because its i-th stop condition holds.
func (m *Machine) met(l *loop, i int) {
	l.of.end.why = &event.RunTerminatedBy{Reason: event.ReasonConditionMet, Index: &i, Kind: l.plan.StopWhen[i].Kind()}
	m.endLoop(l, nil)
}

func (l *loop) last() *passEnd { return &l.passes[len(l.passes)-1] }

// most returns the maximum number of passes.
func (l *loop) most() int {
	if l.plan.Max > 0 {
		return l.plan.Max + l.more
	}
	return SafetyCap
}

// atLimit ends a loop at its cap without a failure of its step.
func (m *Machine) atLimit(l *loop) {
	l.of.end.why = &event.RunTerminatedBy{Reason: event.ReasonMaxIterations, Limit: string(event.ReasonMaxIterations), Output: l.log.Last()}
	m.endLoop(l, nil)
}

// another begins the next pass, or ends a loop at its cap.
func (m *Machine) another(l *loop) {
	switch {
	case l.stuck():
		m.endLoop(l, &event.Failure{Class: string(event.ReasonStuck), Message: fmt.Sprintf(
			"%d iterations in a row changed no file and no number of passing tests", l.unchanged)})
	case l.next < l.most() && l.plan.Delay > 0:
		id := fmt.Sprintf("%s/delay/%d", l.of.name(), l.next)
		until := m.Now.Add(l.plan.Delay)
		l.of.request = "wait " + id
		m.requests.add(l.of.request, func() []machine.Action { return m.Until(id, until) }, func(event.Data) { m.nextPass(l) })
	case l.next < l.most():
		m.nextPass(l)
	case l.plan.Max == 0 || len(l.plan.StopWhen) == 0 && l.last().error == nil && !m.cfg.Plan.Refine:
		m.endLoop(l, nil)
	case len(l.plan.StopWhen) == 0 && l.last().error != nil && l.plan.OnLimit != plan.LimitIsOK && !m.cfg.Plan.Refine:
		m.endLoop(l, l.last().error)
	case l.plan.OnLimit == plan.LimitAsks:
		m.askForMore(l)
	case l.plan.OnLimit == plan.LimitIsOK, l.plan.OnLimit == plan.LimitStopped:
		m.atLimit(l)
	default:
		m.endLoop(l, &event.Failure{Class: string(event.ReasonMaxIterations), Message: fmt.Sprintf(
			"nothing that ends the loop held within %d iterations", l.most())})
	}
}

// endLoop ends a loop's step. The step fails if failure is not nil.
func (m *Machine) endLoop(l *loop, failure *event.Failure) {
	d := event.StepFinished{Status: event.StepStatusCompleted, Error: failure}
	if failure != nil {
		d.Status = event.StepStatusFailed
	}
	l.of.whole, l.of.end.passes = l.plan.Output == plan.Cumulative, len(l.passes)
	d.Content, d.Result = l.content(), l.result()
	m.finish(l.of, d)
}

// content returns the outputs of the passes in the form that the plan configures.
func (l *loop) content() string {
	var texts []string
	for i, end := range l.passes {
		if l.plan.Output == plan.Last && i < len(l.passes)-1 || end.status == "" || l.plan.Items != nil && end.status != event.StepStatusCompleted {
			continue
		}
		text := end.content
		if j := end.judged; j != nil && l.plan.Output == plan.Cumulative {
			text += "\n\n### Judge\n\n" + strings.TrimSpace(j.content+"\n\n"+j.reason)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n\n---\n\n")
}

// result returns the result of the last pass. For a loop over items it returns the
// results of all passes, in order.
func (l *loop) result() json.RawMessage {
	if len(l.passes) == 0 {
		return nil
	}
	if l.plan.Items == nil {
		return l.last().result
	}
	var b bytes.Buffer
	b.WriteString(`{"items":[`)
	for i, end := range l.passes {
		if i > 0 {
			b.WriteByte(',')
		}
		item := map[string]any{"status": end.status}
		if len(end.result) > 0 {
			item["result"] = end.result
		}
		if end.error != nil {
			item["error"] = end.error.Message
		}
		raw, _ := json.Marshal(item)
		b.Write(raw)
	}
	b.WriteString("]}")
	return b.Bytes()
}

// stopLoop ends the active parts of a loop.
func (m *Machine) stopLoop(l *loop) {
	n := l.of
	m.requests.drop(n.request)
	m.requests.drop(fmt.Sprint("progress ", l.next, " ", n.id))
	for i := range l.next {
		s := l.active[i]
		if s == nil {
			continue
		}
		if _, had := m.requests.drop(fmt.Sprint("iteration ", i, " ", n.id)); had {
			delete(l.active, i)
			continue
		}
		m.stopScope(s)
	}
	if l.judge != "" {
		if _, had := m.requests.drop("child " + l.judge); had {
			m.judgeLeft(l)
		} else {
			m.Stop(l.judge, "the workflow does not want this verdict any more")
		}
	}
	m.dropReview(l)
	m.unblock(l)
	if l.command != "" && m.dropCommand(l.command) {
		l.command = ""
		m.busy(n.in, "", -1)
	}
	m.endStopped(l)
}

// endStopped ends a stopped loop when no part of it is active.
func (m *Machine) endStopped(l *loop) {
	if len(l.active) > 0 || l.judge != "" || l.command != "" || l.of.phase != working {
		return
	}
	if l.unlogged != nil {
		l.passes, l.unlogged = append(l.passes, *l.unlogged), nil
	}
	l.of.end.passes = len(l.passes)
	d := *l.of.stop
	d.Content, d.Result = l.content(), l.result()
	m.finish(l.of, d)
}
