package agent

import (
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

// nextDecision says what a settled cycle leads to: an end, a nudge, or the
// next cycle. Conditions come before limits, so that a condition met in the
// last allowed cycle wins over the ceiling (ALDO-16).
func (m *Machine) nextDecision() {
	if m.cancel != nil {
		m.terminate(event.RunTerminatedBy{Reason: event.ReasonCancelled, Detail: m.cancel.Reason})
		return
	}
	if i := stop.First(m.cfg.Conditions, m.cycleView()); i >= 0 {
		m.terminate(event.RunTerminatedBy{
			Reason: event.ReasonConditionMet, Index: &i, Kind: string(m.cfg.Conditions[i].Kind),
		})
		return
	}
	if m.endedByTool() || m.endedByFinish() {
		return
	}
	if m.stopBudget != "" {
		m.exhausted(m.stopBudget)
		return
	}
	if len(m.calls) > 0 || len(m.inputs) > 0 || m.response.FinishReason == llm.FinishPause {
		m.nextCycle()
		return
	}
	m.withoutCalls()
}

func (m *Machine) cycleView() stop.Cycle {
	c := stop.Cycle{Text: llm.Parts(m.response.Parts).Text(), SpentUSD: m.cost.USD}
	c.LimitUSD, _ = m.cfg.Limits.CostCap()
	for _, call := range m.calls {
		c.Results = append(c.Results, call.result)
	}
	return c
}

func (m *Machine) endedByTool() bool {
	for _, c := range m.calls {
		if c.result.EndsRun && !c.result.IsError {
			m.terminate(event.RunTerminatedBy{
				Reason: event.ReasonFinalAnswer, Kind: "tool:" + c.ref.Name, Output: c.result.Output,
			})
			return true
		}
	}
	return false
}

// endedByFinish tells the model's odd endings apart: refusal, overflow, and
// the ones that may happen a few times but not for ever.
func (m *Machine) endedByFinish() bool {
	fail := func(reason event.Reason, class, message string) bool {
		m.terminate(event.RunTerminatedBy{Reason: reason, Error: &event.Failure{Class: class, Message: message}})
		return true
	}
	switch f := m.response.FinishReason; {
	case f == llm.FinishRefusal:
		return fail(event.ReasonRefused, string(llm.ClassRefused), sentence("the model declined to answer", llm.Parts(m.response.Parts).Text()))
	case f == llm.FinishContext:
		return fail(event.ReasonModelError, string(llm.ClassContextOverflow), "the conversation no longer fits the model's context window")
	case f == llm.FinishFailed:
		return fail(event.ReasonModelError, string(llm.ClassOverloaded), "the provider reported that the answer failed")
	case m.truncations >= maxTruncations:
		return fail(event.ReasonTruncated, "length", "the answer was cut off at the output limit four times in a row")
	case m.pauses > maxPauses:
		return fail(event.ReasonModelError, "pause", "the provider paused the turn more than five times in a row")
	case m.malformed > 1:
		return fail(event.ReasonModelError, "malformed", "the model's tool call could not be read twice in a row")
	case m.empties > 1:
		return fail(event.ReasonEmptyResponse, "empty", "the model gave an empty answer twice in a row")
	}
	return false
}

// withoutCalls handles a cycle in which the model asked for no tool.
func (m *Machine) withoutCalls() {
	switch {
	case m.empties > 0:
		m.nudge(event.NudgeEmpty, emptyNudge)
	case m.response.FinishReason == llm.FinishLength:
		m.nudge(event.NudgeTruncated, truncatedNudge)
	case m.response.FinishReason == llm.FinishMalformed:
		m.nudge(event.NudgeMalformed, malformedNudge)
	case m.cfg.OnNoToolCall == NoToolCallStop:
		m.terminate(event.RunTerminatedBy{Reason: event.ReasonNoAnswerOrCall})
	case m.cfg.OnNoToolCall == NoToolCallNudge && m.cfg.MaxNudges > 0 && m.nudges >= m.cfg.MaxNudges:
		m.terminate(event.RunTerminatedBy{Reason: event.ReasonNoAnswerOrCall, Limit: "max_nudges"})
	case m.cfg.OnNoToolCall == NoToolCallNudge:
		m.nudge(event.NudgeNoToolCall, m.cfg.NudgeText)
	default:
		m.terminate(event.RunTerminatedBy{Reason: event.ReasonFinalAnswer})
	}
}

// nudge adds a user message, unless no cycle is left to answer it.
func (m *Machine) nudge(kind event.NudgeKind, text string) {
	if m.cfg.Limits.MaxCycles > 0 && m.cycle >= m.cfg.Limits.MaxCycles {
		m.nextCycle()
		return
	}
	m.record(event.Nudge{Kind: kind, Text: text})
}
