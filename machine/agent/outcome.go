package agent

import (
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/stop"
)

// conclude builds the outcome of a run whose end has been recorded.
func (m *Machine) conclude() event.Outcome {
	o := event.Outcome{
		Reason: m.end.Reason, Limit: m.end.Limit, Index: m.end.Index, Kind: m.end.Kind, Error: m.end.Error,
		FinalOutput: m.lastText, LastOutput: m.lastText,
		Cycles: m.cycle, Usage: m.usage,
	}
	if m.end.Output != "" {
		o.FinalOutput = m.end.Output
	}
	if m.spent.ModelCalls > 0 {
		cost := m.cost
		o.Cost = &cost
	}
	o.Status, o.OK, o.Completed = m.grade()
	if !o.Completed {
		o.NextSafeAction = nextSafeAction(m.end)
	}
	return o
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
	case strings.HasPrefix(string(r), "budget:"),
		r == event.ReasonStuck, r == event.ReasonTruncated, r == event.ReasonNoAnswerOrCall:
		return event.StatusStopped, false, false
	case r == event.ReasonCancelled:
		return event.StatusCancelled, false, false
	}
	return event.StatusFailed, false, false
}

// nextSafeAction is the sentence that tells an owner how to go on (HAR-51).
func nextSafeAction(end *event.RunTerminatedBy) string {
	switch r := end.Reason; {
	case r == event.ReasonMaxCycles:
		return "Look at what the last cycles did; if they made progress, continue the run with a higher cycle cap."
	case strings.HasPrefix(string(r), "budget:"), end.Kind == string(stop.BudgetExhausted):
		return "Look at what was spent; if it was worth it, raise " + end.Limit + " and continue the run."
	case r == event.ReasonTruncated:
		return "Raise the output limit of the model, or ask for the work in smaller pieces, and continue the run."
	case r == event.ReasonEmptyResponse:
		return "Try another model, or say the task again in other words."
	case r == event.ReasonNoAnswerOrCall:
		return "Read the last output; tell the agent in a new message what is missing."
	case r == event.ReasonRefused:
		return "Read why the model declined; change the task or choose another model."
	case r == event.ReasonModelError:
		return "Read the error; when its cause is mended, continue the run: everything paid for is kept."
	case r == event.ReasonCancelled:
		return "Nothing is running; continue the run if it should go on."
	}
	return "Read the run's events to see what happened, then continue the run or start a new one."
}
