package agent

import (
	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/stop"
)

// endedByCondition ends the run by the first of the owner's conditions that is met.
func (m *Machine) endedByCondition() machine.Action {
	if len(m.cfg.Conditions) == 0 {
		return nil
	}
	if i := stop.First(m.cfg.Conditions, m.cycleView()); i >= 0 {
		return m.conditionMet(i)
	}
	return nil
}

func (m *Machine) conditionMet(i int) machine.Action {
	met := m.cfg.Conditions[i]
	d := event.RunTerminatedBy{Reason: event.ReasonConditionMet, Index: &i, Kind: string(met.Kind)}
	if met.Kind.OfMoney() {
		_, d.Limit = m.cfg.Limits.CostCap()
	} else if r := met.Evidence(m.cycleView()); r != nil {
		d.CallID = r.CallID
	}
	return m.terminate(d)
}

// outOfBudget ends the run by a limit that refused a call of the cycle.
func (m *Machine) outOfBudget() machine.Action {
	if m.calls.stopBudget == "" {
		return nil
	}
	return m.exhausted(budget.Refusal{Setting: m.calls.stopBudget})
}

// withheld tells the model what it has to go on without, if it would go on with that.
func (m *Machine) withheld() machine.Action {
	if w := m.brokenOff(); w != nil {
		return m.nudge(event.NudgeWithheld, withheldNudge(w))
	}
	return nil
}

// goOn begins the next cycle where the results of calls, a paused answer or a message
// are to be answered.
func (m *Machine) goOn() machine.Action {
	if len(m.calls.list) > 0 || m.model.response.FinishReason == llm.FinishPause || len(m.messages.unread) > 0 && m.hasRoom() {
		return m.nextCycle()
	}
	return nil
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

func (m *Machine) endedByTool() machine.Action {
	for _, c := range m.calls.list {
		if c.isResult(&m.cfg) {
			return m.terminate(event.RunTerminatedBy{Reason: event.ReasonFinalAnswer, Kind: "tool:" + c.ref.Name, CallID: c.ref.CallID})
		}
		if c.result.EndsRun && !c.result.IsError {
			return m.finish(event.RunTerminatedBy{
				Reason: event.ReasonFinalAnswer, Kind: "tool:" + c.ref.Name, CallID: c.ref.CallID, Output: c.result.Output,
			})
		}
	}
	return nil
}

// endedByVoid ends the run on an answer that is none: declined, without room,
// or broken. Sending the same again would end the same.
func (m *Machine) endedByVoid() machine.Action {
	switch f := m.model.response.FinishReason; f {
	case llm.FinishRefusal:
		return m.fail(event.ReasonRefused, string(llm.ClassRefused),
			sentence("the model declined to answer", llm.Parts(m.model.response.Parts).Text(), m.model.response.FinishDetail))
	case llm.FinishContext:
		if m.compaction.overflow == reliefGiven {
			return nil
		}
		if a := m.nextRelief(); a != nil {
			return a
		}
		return m.fail(event.ReasonModelError, string(llm.ClassContextOverflow),
			"the conversation no longer fits the model's context window")
	case llm.FinishEnd, llm.FinishTool, llm.FinishLength, llm.FinishPause, llm.FinishMalformed:
		return nil
	default:
		return m.fail(event.ReasonModelError, string(llm.ClassOverloaded),
			sentence("the provider reported that the answer failed", m.model.response.RawFinish))
	}
}

// endedByRepetition stops what may happen a few times but not for ever.
func (m *Machine) endedByRepetition() machine.Action {
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
	return nil
}

// withoutCalls handles a cycle in which the model asked for no tool.
func (m *Machine) withoutCalls() machine.Action {
	f := m.model.response.FinishReason
	switch {
	case m.turn.empties > 0:
		return m.nudge(event.NudgeEmpty, emptyNudge)
	case f == llm.FinishLength || f == llm.FinishContext:
		return m.nudge(event.NudgeTruncated, m.cfg.truncatedNudge())
	case malformed(f, 0):
		return m.nudge(event.NudgeMalformed, malformedNudge)
	case m.cfg.Result != "":
		return m.withoutResult()
	case m.cfg.OnNoToolCall == NoToolCallStop:
		return m.terminate(event.RunTerminatedBy{Reason: event.ReasonNoAnswerOrCall})
	case m.cfg.OnNoToolCall == NoToolCallNudge && m.cfg.MaxNudges > 0 && m.turn.nudges >= m.cfg.MaxNudges:
		return m.terminate(event.RunTerminatedBy{Reason: event.ReasonNoAnswerOrCall, Limit: "max_nudges"})
	case m.cfg.OnNoToolCall == NoToolCallNudge:
		return m.nudge(event.NudgeNoToolCall, m.cfg.NudgeText)
	}
	return m.finish(event.RunTerminatedBy{Reason: event.ReasonFinalAnswer})
}

// nudge adds a user message, unless no cycle is left to answer it. It comes behind
// what compaction leaves (ALDO-47, ALDO-48), but for the one that takes away what
// no provider would read again, not even for a summary.
func (m *Machine) nudge(kind event.NudgeKind, text string) machine.Action {
	goesOn := !m.pause && curedByCompaction(m.refused(m.target()))
	if m.atCeiling() || m.compaction.summary.asked && !goesOn { // parks, and then goes on with the summary
		return m.nextCycle()
	}
	if kind != event.NudgeWithheld && goesOn {
		if a := m.nextCompaction(llm.UserText(text)); a != nil {
			return a
		}
	}
	return record(event.Nudge{Kind: kind, Text: text})
}
