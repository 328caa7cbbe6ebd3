package agent

import (
	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

// nextDecision says what a settled cycle leads to: an end, a nudge, or the
// next cycle. An answer that the provider itself calls void meets no
// condition. Conditions come before limits, so that one met in the last
// allowed cycle wins over the ceiling (ALDO-16).
func (m *Machine) nextDecision() {
	if m.run.Cancel != nil {
		m.cancelled()
		return
	}
	if m.endedByVoid() {
		return
	}
	if len(m.cfg.Conditions) > 0 {
		if i := stop.First(m.cfg.Conditions, m.cycleView()); i >= 0 {
			m.conditionMet(i)
			return
		}
	}
	if m.endedByTool() || m.endedByRefusal() || m.endedByExpiry() || m.endedByMishaps() || m.endedByRepetition() {
		return
	}
	switch {
	case m.calls.stopBudget != "":
		m.exhausted(budget.Refusal{Setting: m.calls.stopBudget})
	case m.nextStuck():
	case m.brokenOff() != nil:
		m.nudge(event.NudgeWithheld, withheldNudge(m.brokenOff()))
	case len(m.calls.list) > 0 || m.model.response.FinishReason == llm.FinishPause:
		m.nextCycle()
	case len(m.messages.unread) > 0 && m.hasRoom():
		m.nextCycle()
	default:
		m.withoutCalls()
	}
}

// hasRoom reports whether no limit stands against another cycle. Without room, an
// answer is judged for itself, whatever message came with it.
func (m *Machine) hasRoom() bool {
	return !m.atCeiling() && m.refused(m.target()) == (budget.Refusal{})
}

func (m *Machine) cycleView() stop.Cycle {
	c := stop.Cycle{Text: llm.Parts(m.model.response.Parts).Text(), SpentUSD: m.run.Spent.USD}
	c.LimitUSD, _ = m.cfg.Limits.CostCap()
	for _, call := range m.calls.list {
		c.Results = append(c.Results, call.result)
	}
	return c
}

func (m *Machine) endedByTool() bool {
	for _, c := range m.calls.list {
		if m.isResult(c) {
			m.terminate(event.RunTerminatedBy{Reason: event.ReasonFinalAnswer, Kind: "tool:" + c.ref.Name, CallID: c.ref.CallID})
			return true
		}
		if c.result.EndsRun && !c.result.IsError {
			m.finish(event.RunTerminatedBy{
				Reason: event.ReasonFinalAnswer, Kind: "tool:" + c.ref.Name, CallID: c.ref.CallID, Output: c.result.Output,
			})
			return true
		}
	}
	return false
}

func (m *Machine) fail(reason event.Reason, class, message string) bool {
	m.terminate(event.RunTerminatedBy{Reason: reason, Error: &event.Failure{Class: class, Message: message}})
	return true
}

// endedByVoid ends the run on an answer that is none: declined, without room,
// or broken. Sending the same again would end the same.
func (m *Machine) endedByVoid() bool {
	switch f := m.model.response.FinishReason; f {
	case llm.FinishRefusal:
		return m.fail(event.ReasonRefused, string(llm.ClassRefused),
			sentence("the model declined to answer", llm.Parts(m.model.response.Parts).Text(), m.model.response.FinishDetail))
	case llm.FinishContext:
		if m.compaction.overflow == reliefGiven {
			return false
		}
		return m.nextRelief() || m.fail(event.ReasonModelError, string(llm.ClassContextOverflow),
			"the conversation no longer fits the model's context window")
	case llm.FinishEnd, llm.FinishTool, llm.FinishLength, llm.FinishPause, llm.FinishMalformed:
		return false
	default:
		return m.fail(event.ReasonModelError, string(llm.ClassOverloaded),
			sentence("the provider reported that the answer failed", m.model.response.RawFinish))
	}
}

// endedByRepetition stops what may happen a few times but not for ever.
func (m *Machine) endedByRepetition() bool {
	switch t := &m.turn; {
	case t.truncations >= maxTruncations:
		return m.fail(event.ReasonTruncated, "length", "the answer was cut off at the output limit four times in a row")
	case t.pauses > maxPauses:
		return m.fail(event.ReasonModelError, "pause", "the provider paused the turn more than five times in a row")
	case t.malformed > 1:
		return m.fail(event.ReasonModelError, "malformed", "the model's tool call could not be read twice in a row")
	case t.empties > 1:
		return m.fail(event.ReasonEmptyResponse, "empty", "the model gave an empty answer twice in a row")
	}
	return false
}

// withoutCalls handles a cycle in which the model asked for no tool.
func (m *Machine) withoutCalls() {
	f := m.model.response.FinishReason
	switch {
	case m.turn.empties > 0:
		m.nudge(event.NudgeEmpty, emptyNudge)
	case f == llm.FinishLength || f == llm.FinishContext:
		m.nudge(event.NudgeTruncated, m.truncatedNudge())
	case malformed(f, 0):
		m.nudge(event.NudgeMalformed, malformedNudge)
	case m.cfg.Result != "":
		m.withoutResult()
	case m.cfg.OnNoToolCall == NoToolCallStop:
		m.terminate(event.RunTerminatedBy{Reason: event.ReasonNoAnswerOrCall})
	case m.cfg.OnNoToolCall == NoToolCallNudge && m.cfg.MaxNudges > 0 && m.turn.nudges >= m.cfg.MaxNudges:
		m.terminate(event.RunTerminatedBy{Reason: event.ReasonNoAnswerOrCall, Limit: "max_nudges"})
	case m.cfg.OnNoToolCall == NoToolCallNudge:
		m.nudge(event.NudgeNoToolCall, m.cfg.NudgeText)
	default:
		m.finish(event.RunTerminatedBy{Reason: event.ReasonFinalAnswer})
	}
}

// nudge adds a user message, unless no cycle is left to answer it. It comes behind
// what compaction leaves (ALDO-47, ALDO-48), but for the one that takes away what
// no provider would read again, not even for a summary.
func (m *Machine) nudge(kind event.NudgeKind, text string) {
	goesOn := !m.pause && curedByCompaction(m.refused(m.target()))
	switch {
	case m.atCeiling(), m.compaction.asked && !goesOn: // parks, and then goes on with the summary
		m.nextCycle()
	case kind != event.NudgeWithheld && goesOn && m.nextCompaction(llm.UserText(text)):
	default:
		m.record(event.Nudge{Kind: kind, Text: text})
	}
}
