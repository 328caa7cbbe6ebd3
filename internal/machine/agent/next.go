package agent

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

// Next returns what is due. All actions except those about the calls of an answer come
// one by one.
func (m *Machine) Next() []machine.Action {
	if m.run.Parked != nil {
		return nil
	}
	var due actions
	switch a := m.nextAnyway(); {
	case a != nil:
		due.add(a)
	case m.compaction.summary.call.inFlight:
	case m.run.phase == phaseTools:
		m.nextCalls(&due)
	default:
		due.add(m.account.beforeEnd(m.nextOf(m.run.phase)))
	}
	return due
}

// nextAnyway returns what comes first in every phase.
func (m *Machine) nextAnyway() machine.Action {
	r := &m.run
	return first(
		func() machine.Action { return m.account.settlement(r) },
		func() machine.Action {
			return m.account.lost(r, &m.compaction.summary.call, m.target(), event.PurposeSummary)
		},
		func() machine.Action { return m.compaction.hooks.nextAfter(r) },
	)
}

// nextOf is the table of the phases: what each of them may lead to, in the order in
// which it is checked. For an answer with calls see [Machine.nextCalls].
func (m *Machine) nextOf(p phase) machine.Action {
	r := &m.run
	switch p {
	case phaseReady:
		return m.nextCycle()
	case phaseModel:
		return m.nextAttempt()
	case phaseSettled:
		// An answer that the provider itself calls void meets no condition. Conditions
		// come before limits, so that one met in the last allowed cycle takes
		// precedence over the ceiling.
		return first(
			r.cancelled,
			m.endedByVoid,
			func() machine.Action { return m.calls.endedByCondition(r, m.model.response) },
			m.endedByTool,
			func() machine.Action { return m.calls.endedByRefusal(&r.cfg) },
			func() machine.Action { return m.calls.endedByExpiry(&r.cfg) },
			func() machine.Action { return m.progress.failureCounts.endedByFailures(&r.cfg, m.calls.list) },
			m.turn.endedByRepetition,
			func() machine.Action { return m.account.exhausted(r, budget.Refusal{Setting: m.calls.stopBudget}) },
			m.nextStuck,
			m.withheld,
			m.continueCycles,
			m.withoutCalls,
		)
	case phaseEnding:
		outcome := r.outcome(&m.turn, &m.calls, len(m.messages.due()))
		if a := m.hooks.nextAfter(r, &outcome); a != nil {
			return a
		}
		return record(event.RunCompleted{Outcome: outcome})
	}
	return nil
}

// nextCycle opens a cycle, unless something prevents it: a cancel first, then a pause,
// then the limits.
func (m *Machine) nextCycle() machine.Action {
	r := &m.run
	return first(
		r.cancelled,
		func() machine.Action { return m.account.paused(r) },
		func() machine.Action { return m.messages.withoutTask(r.cycle) },
		m.hooks.refused,
		func() machine.Action { return m.hooks.nextBefore(r) },
		func() machine.Action { return m.account.warn(r, budget.OfCycles) },
		r.outOfCycles,
		m.openCycle,
	)
}

// openCycle begins a cycle if there is room for its call, which a compaction may make.
func (m *Machine) openCycle() machine.Action {
	refusal := m.refused(m.target())
	if curedByCompaction(refusal) {
		if a := m.nextCompaction(); a != nil {
			return a
		}
	}
	switch {
	case refusal.Setting != "":
		return m.account.exhausted(&m.run, refusal)
	case m.account.id != "": // for a summary that was not made
		return m.account.giveBack()
	}
	return record(event.CycleStart{Cycle: m.run.cycle + 1, MaxCycles: m.run.cfg.Limits.MaxCycles})
}

// nextAttempt requests a model call, or decides about the one that failed.
func (m *Machine) nextAttempt() machine.Action {
	if m.model.inFlight && !m.model.orphan {
		return nil
	}
	r := &m.run
	return first(
		func() machine.Action { return m.account.lost(r, &m.model.attempt, m.target(), "") },
		r.cancelled,
		m.nextRetry,
		func() machine.Action { return m.account.paused(r) },
		func() machine.Action { return m.account.exhausted(r, tooLateToWait(r.outlasts(m.model.notBefore), 0)) },
		m.reserve,
		m.callModel,
	)
}

// continueCycles begins the next cycle if the results of calls, a paused answer or a message need
// an answer.
func (m *Machine) continueCycles() machine.Action {
	if len(m.calls.list) > 0 || m.model.response.FinishReason == llm.FinishPause || len(m.messages.due()) > 0 && m.hasRoom() {
		return m.nextCycle()
	}
	return nil
}

// hasRoom reports whether no limit prevents another cycle. Without room, an answer is
// judged by itself, whatever message came with it.
func (m *Machine) hasRoom() bool {
	return !m.run.atCeiling() && m.refused(m.target()) == (budget.Refusal{})
}

// withheld informs the model which tools are missing, if it would continue with them.
func (m *Machine) withheld() machine.Action {
	if w := m.model.brokenOff(&m.run, &m.permissions, len(m.calls.list)); w != nil {
		return m.nudge(event.NudgeWithheld, withheldNudge(w))
	}
	return nil
}

// endedByCondition ends the run by the first of the owner's conditions that is met.
func (s *calls) endedByCondition(r *run, answer *event.ModelResponse) machine.Action {
	if len(r.cfg.Conditions) == 0 {
		return nil
	}
	cycle := stop.Cycle{SpentUSD: r.Spent.USD}
	if answer.FinishReason != llm.FinishMalformed { // an unreadable call is no answer
		cycle.Text = llm.Parts(answer.Parts).Text()
	}
	cycle.LimitUSD, _ = r.cfg.Limits.CostCap()
	for _, c := range s.list {
		cycle.Results = append(cycle.Results, c.result)
	}
	i := stop.First(r.cfg.Conditions, cycle)
	if i < 0 {
		return nil
	}
	d := r.cfg.met(i)
	if seen := r.cfg.Conditions[i].Evidence(cycle); seen != nil {
		d.CallID = seen.CallID
	}
	return record(d)
}

// met ends the run by one of the conditions.
func (c *Config) met(i int) event.RunTerminatedBy {
	kind := c.Conditions[i].Kind
	d := event.RunTerminatedBy{Reason: event.ReasonConditionMet, Index: &i, Kind: string(kind)}
	if kind.OfMoney() {
		_, d.Limit = c.Limits.CostCap()
	}
	return d
}

func (m *Machine) endedByTool() machine.Action {
	for _, c := range m.calls.list {
		if c.isResult(&m.run.cfg) {
			return record(event.RunTerminatedBy{Reason: event.ReasonFinalAnswer, Kind: "tool:" + c.ref.Name, CallID: c.ref.CallID})
		}
		if c.result.EndsRun && !c.result.IsError {
			return m.finish(event.RunTerminatedBy{
				Reason: event.ReasonFinalAnswer, Kind: "tool:" + c.ref.Name, CallID: c.ref.CallID, Output: c.result.Output,
			})
		}
	}
	return nil
}

// endedByVoid ends the run on an unusable answer: declined, without room, or broken.
// The same request would end in the same way.
func (m *Machine) endedByVoid() machine.Action {
	switch f := m.model.response.FinishReason; f {
	case llm.FinishRefusal:
		return fail(event.ReasonRefused, string(llm.ClassRefused),
			sentence("the model declined to answer", llm.Parts(m.model.response.Parts).Text(), m.model.response.FinishDetail))
	case llm.FinishContext:
		if m.compaction.overflow == reliefGiven {
			return nil
		}
		if a := m.nextRelief(); a != nil {
			return a
		}
		return fail(event.ReasonModelError, string(llm.ClassContextOverflow),
			"the conversation no longer fits the model's context window")
	case llm.FinishEnd, llm.FinishTool, llm.FinishLength, llm.FinishPause, llm.FinishMalformed:
		return nil
	default:
		return fail(event.ReasonModelError, string(llm.ClassOverloaded),
			sentence("the provider reported that the answer failed", m.model.response.RawFinish))
	}
}

// endedByRepetition stops what may happen a few times but not forever.
func (t *turn) endedByRepetition() machine.Action {
	switch {
	case t.truncations >= maxTruncations:
		return fail(event.ReasonTruncated, "length", "the answer was cut off at the output limit four times in a row")
	case t.pauses > maxPauses:
		return fail(event.ReasonModelError, "pause", "the provider paused the turn more than five times in a row")
	case t.malformed > 1:
		return fail(event.ReasonModelError, "malformed", "the model's tool call could not be read twice in a row")
	case t.empties > 1:
		return fail(event.ReasonEmptyResponse, "empty", "the model gave an empty answer twice in a row")
	}
	return nil
}

// withoutCalls handles a cycle without tool calls.
func (m *Machine) withoutCalls() machine.Action {
	f := m.model.response.FinishReason
	switch {
	case m.turn.empties > 0:
		return m.nudge(event.NudgeEmpty, emptyNudge)
	case f == llm.FinishLength || f == llm.FinishContext:
		return m.nudge(event.NudgeTruncated, m.run.cfg.truncatedNudge())
	case malformed(f, 0):
		return m.nudge(event.NudgeMalformed, malformedNudge)
	case m.run.cfg.Result != "":
		return m.withoutResult()
	case m.run.cfg.OnNoToolCall == NoToolCallStop:
		return record(event.RunTerminatedBy{Reason: event.ReasonNoAnswerOrCall})
	case m.run.cfg.OnNoToolCall == NoToolCallNudge && m.run.cfg.MaxNudges > 0 && m.turn.nudges >= m.run.cfg.MaxNudges:
		return record(event.RunTerminatedBy{Reason: event.ReasonNoAnswerOrCall, Limit: "max_nudges"})
	case m.run.cfg.OnNoToolCall == NoToolCallNudge:
		return m.nudge(event.NudgeNoToolCall, m.run.cfg.NudgeText)
	}
	return m.finish(event.RunTerminatedBy{Reason: event.ReasonFinalAnswer})
}

// nudge adds a user message, unless no cycle is left to answer it. It comes after what
// compaction leaves, except after the relief compaction that removes what no provider
// would read again, not even for a summary.
func (m *Machine) nudge(kind event.NudgeKind, text string) machine.Action {
	goesOn := !m.run.pause && curedByCompaction(m.refused(m.target()))
	if m.run.atCeiling() || m.compaction.summary.asked && !goesOn { // parks, and then continues with the summary
		return m.nextCycle()
	}
	if kind != event.NudgeWithheld && goesOn {
		if a := m.nextCompaction(llm.UserText(text)); a != nil {
			return a
		}
	}
	return record(event.Nudge{Kind: kind, Text: text})
}

// finish ends the run with an answer. If the run has a schema, the answer must match
// it: an invalid one goes back to the model, a bounded number of times.
func (m *Machine) finish(d event.RunTerminatedBy) machine.Action {
	checked := m.turn.checked
	switch {
	case len(m.run.cfg.Schema) == 0:
		return record(d)
	case checked == nil:
		return machine.CheckAnswer{
			Cycle: m.run.cycle, Schema: m.run.cfg.Schema, Answer: strings.TrimSpace(cmp.Or(d.Output, m.turn.answer)),
		}
	case checked.Problem == "":
		return record(d)
	case m.turn.invalid >= maxInvalidAnswers:
		return record(event.RunTerminatedBy{
			Reason: event.ReasonRepeatedFailure, Kind: kindInvalidAnswer,
			Error: &event.Failure{Class: kindInvalidAnswer, Message: fmt.Sprintf(
				"%d answers did not match the schema; the last one: %s", m.turn.invalid, checked.Problem)},
		})
	}
	return m.nudge(event.NudgeInvalid, invalidNudge(m.quoted(checked.Problem)))
}

// withoutResult handles an answer without a call. Its text is the result if that is
// allowed and it is valid; otherwise the model is asked for its result once.
func (m *Machine) withoutResult() machine.Action {
	wrong := ""
	if schema, said := m.run.cfg.textSchema(), object(m.turn.answer); schema != nil && said != nil {
		switch checked := m.turn.checked; {
		case checked == nil:
			return machine.CheckAnswer{Cycle: m.run.cycle, Schema: schema, Answer: string(said)}
		case checked.Problem == "":
			return record(event.RunTerminatedBy{Reason: event.ReasonFinalAnswer})
		default:
			wrong = " What you wrote does not match its schema: " + m.quoted(checked.Problem)
		}
	}
	if m.turn.resultAsked {
		return fail(event.ReasonNoAnswerOrCall, "no_result", NoResult)
	}
	return m.nudge(event.NudgeResult, "You have not given the result of your task. Call "+m.run.cfg.Result+" with it now; your text alone is no result."+wrong)
}

// quoted describes the problem of an answer, which names parts of the answer, such as a
// property: fenced if the run has read untrusted text.
func (m *Machine) quoted(problem string) string {
	if m.run.Taint.Untrusted != nil {
		return m.messages.fence.Wrap("answer", problem)
	}
	return problem
}

// nextStuck handles repetition once a cycle has settled: it nudges, or ends the run.
func (m *Machine) nextStuck() machine.Action {
	if m.progress.stuck == nil {
		if d, ok := m.progress.repetition.Due(); ok {
			return record(d)
		}
		return nil
	}
	d := *m.progress.stuck
	if d.Action != event.StuckStop {
		return m.nudge(event.NudgeStuck, stop.Message(d))
	}
	return record(event.RunTerminatedBy{
		Reason: event.ReasonStuck, Kind: d.Pattern,
		Detail: fmt.Sprintf("%s, %d times in a row", sentence(d.Pattern, d.Tool), d.Count),
	})
}
