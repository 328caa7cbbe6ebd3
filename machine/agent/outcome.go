package agent

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/stop"
)

// conclude builds the outcome of a run whose end has been recorded.
func (m *Machine) conclude() event.Outcome {
	o := event.Outcome{
		Reason: m.run.Terminated.Reason, Limit: m.run.Terminated.Limit, LimitRun: m.run.Terminated.LimitRun, Index: m.run.Terminated.Index, Kind: m.run.Terminated.Kind, Error: m.run.Terminated.Error,
		FinalOutput: m.turn.said, LastOutput: m.turn.said,
		Cycles: m.run.cycle, Usage: m.run.Costs.Usage(),
	}
	switch {
	case m.run.cfg.AllText:
		o.FinalOutput = m.turn.all
	case m.run.Terminated.Output != "":
		o.FinalOutput = m.run.Terminated.Output
	case m.run.Terminated.Reason == event.ReasonFinalAnswer:
		o.FinalOutput = m.turn.answer
	}
	if m.run.Spent.ModelCalls > 0 {
		cost := m.run.Costs.Cost()
		o.Cost = &cost
	}
	o.Result = m.calls.result(&m.run.cfg)
	o.Status, o.OK, o.Completed = m.run.cfg.grade(m.run.Terminated)
	var advice []string
	if !o.Completed {
		advice = append(advice, nextSafeAction(m.run.Terminated, m.run.Spent))
	}
	if m.calls.leftInDoubt() {
		advice = append(advice, "A call was interrupted and may have taken effect: check before you repeat it.")
	}
	if n := len(m.messages.unread); n > 0 {
		advice = append(advice, unread(n))
	}
	o.NextSafeAction = strings.Join(advice, " ")
	return o
}

// leftInDoubt reports whether nobody knows whether a call of the last cycle took
// effect, and that no model was told so either.
func (s *calls) leftInDoubt() bool {
	return slices.ContainsFunc(s.list, func(c *call) bool { return c.result != nil && c.result.ErrorType == event.ErrorInDoubt })
}

// unread says that messages came too late.
func unread(n int) string {
	if n == 1 {
		return "One message came too late; continue the run to have it read."
	}
	return strconv.Itoa(n) + " messages came too late; continue the run to have them read."
}

// grade separates what happened from what the owner wants to call well.
func (c *Config) grade(end *event.RunTerminatedBy) (status event.Status, ok, completed bool) {
	switch r := end.Reason; {
	case r == event.ReasonFinalAnswer:
		return event.StatusCompleted, true, true
	case r == event.ReasonConditionMet:
		if stop.Kind(end.Kind).OfMoney() {
			return event.StatusStopped, true, false
		}
		return event.StatusCompleted, true, true
	case r == event.ReasonMaxCycles:
		switch c.OnLimit {
		case OnLimitOK:
			return event.StatusStopped, true, false
		case OnLimitFail:
			return event.StatusFailed, false, false
		}
		return event.StatusStopped, false, false
	case isBudget(r) && c.OnBudget[end.Limit] == BudgetOK:
		return event.StatusStopped, true, false
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
