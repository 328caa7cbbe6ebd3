package agent

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/stop"
)

// outcome is that of a run whose end has been recorded.
func (r *run) outcome(t *turn, s *calls, late int) event.Outcome {
	end := r.Terminated
	o := event.Outcome{
		Reason: end.Reason, Limit: end.Limit, AtLeast: end.AtLeast, LimitRun: end.LimitRun, Index: end.Index, Kind: end.Kind, Error: end.Error,
		FinalOutput: t.said, LastOutput: t.said,
		Cycles: r.cycle, Usage: r.Costs.Usage(), Result: t.given(&r.cfg, s),
	}
	switch {
	case r.cfg.AllText:
		o.FinalOutput = t.all
	case end.Output != "":
		o.FinalOutput = end.Output
	case end.Reason == event.ReasonFinalAnswer:
		o.FinalOutput = t.answer
	}
	if r.Spent.ModelCalls > 0 {
		cost := r.Costs.Cost()
		o.Cost = &cost
	}
	o.Status, o.OK, o.Completed = r.cfg.grade(end)
	var advice []string
	if !o.Completed {
		advice = append(advice, nextSafeAction(end, r.Spent))
	}
	if s.leftInDoubt() {
		advice = append(advice, "A call was interrupted and may have taken effect: check before you repeat it.")
	}
	if late > 0 {
		advice = append(advice, unread(late))
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
