package agent

import (
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/stop"
)

// conclude builds the outcome of a run whose end has been recorded.
func (m *Machine) conclude() event.Outcome {
	o := event.Outcome{
		Reason: m.end.Reason, Limit: m.end.Limit, Index: m.end.Index, Kind: m.end.Kind, Error: m.end.Error,
		FinalOutput: m.turn.said, LastOutput: m.turn.said,
		Cycles: m.cycle, Usage: m.costs.Usage(),
	}
	switch {
	case m.end.Output != "":
		o.FinalOutput = m.end.Output
	case m.end.Reason == event.ReasonFinalAnswer:
		o.FinalOutput = m.turn.answer
	}
	if m.spent.ModelCalls > 0 {
		cost := m.costs.Cost()
		o.Cost = &cost
	}
	o.Status, o.OK, o.Completed = m.grade()
	var advice []string
	if !o.Completed {
		advice = append(advice, nextSafeAction(m.end))
	}
	if n := len(m.inputs); n > 0 {
		advice = append(advice, unread(n))
	}
	o.NextSafeAction = strings.Join(advice, " ")
	return o
}

// unread says that messages came too late (F25).
func unread(n int) string {
	if n == 1 {
		return "One message came too late to be read; continue the run to have it read."
	}
	return strconv.Itoa(n) + " messages came too late to be read; continue the run to have them read."
}

// grade separates what happened from what the owner wants to call well.
func (m *Machine) grade() (status event.Status, ok, completed bool) {
	switch r := m.end.Reason; {
	case r == event.ReasonFinalAnswer:
		return event.StatusCompleted, true, true
	case r == event.ReasonConditionMet:
		if m.end.Kind == string(stop.BudgetExhausted) {
			return event.StatusStopped, true, false
		}
		return event.StatusCompleted, true, true
	case r == event.ReasonMaxCycles:
		switch m.cfg.OnLimit {
		case OnLimitOK:
			return event.StatusStopped, true, false
		case OnLimitFail:
			return event.StatusFailed, false, false
		}
		return event.StatusStopped, false, false
	case isBudget(r),
		r == event.ReasonStuck, r == event.ReasonTruncated, r == event.ReasonNoAnswerOrCall:
		return event.StatusStopped, false, false
	case r == event.ReasonCancelled:
		return event.StatusCancelled, false, false
	}
	return event.StatusFailed, false, false
}

func isBudget(r event.Reason) bool {
	return strings.HasPrefix(string(r), string(event.BudgetReason("")))
}

// nextSafeAction is the sentence that tells an owner how to go on (HAR-51).
func nextSafeAction(end *event.RunTerminatedBy) string {
	switch r := end.Reason; {
	case isBudget(r), end.Kind == string(stop.BudgetExhausted):
		return "Look at what was spent; if it was worth it, raise " + end.Limit + " and continue the run."
	case end.Kind == kindInvalidAnswer:
		return "Read what was wrong with the answers; simplify the schema or say in the prompt how to fill it, and continue the run."
	case end.Limit == "approvals.timeout":
		return "Decide sooner or raise approvals.timeout, and continue the run."
	case end.Limit == "max_nudges":
		return "Read the last output; tell the agent in a new message what is missing, or raise max_nudges."
	default:
		return advice(r)
	}
}

func advice(r event.Reason) string {
	switch r {
	case event.ReasonMaxCycles:
		return "Look at what the last cycles did; if they made progress, continue the run with a higher cycle cap."
	case event.ReasonNoAnswerOrCall:
		return "Read the last output; tell the agent in a new message what is missing."
	case event.ReasonRejected:
		return "Read why it was rejected; continue the run with a message that says what to do differently."
	case event.ReasonRepeatedFailure, event.ReasonStuck:
		return "Read the repeated calls and their results; mend their cause or say another way, and continue the run."
	case event.ReasonPolicyDenied:
		return "Read which rule denied the call; change the permissions or the task, and start again."
	case event.ReasonToolUnavailable:
		return "Make the tool available again, and continue the run."
	case event.ReasonModelError:
		return "Read the error; when its cause is mended, continue the run: everything paid for is kept."
	case event.ReasonTruncated:
		return "Raise the output limit of the model, or ask for the work in smaller pieces, and continue the run."
	case event.ReasonEmptyResponse:
		return "Try another model, or say the task again in other words."
	case event.ReasonRefused:
		return "Read why the model declined; change the task or choose another model."
	case event.ReasonJudgeUnavailable:
		return "Mend the judge, and continue the run: nothing has been judged wrongly."
	case event.ReasonCancelled:
		return "Nothing is running; continue the run if it should go on."
	case event.ReasonInternal:
		return "This is a defect of Pawl; the run's events up to here are kept. Please report it."
	}
	return "Read the run's events to see what happened, then continue the run or start a new one."
}
