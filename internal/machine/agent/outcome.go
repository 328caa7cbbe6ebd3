package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

// outcome returns the outcome of a run whose end has been recorded.
func (r *run) outcome(t *turn, s *calls, late int) event.Outcome {
	end := r.Terminated
	o := event.Outcome{
		Reason: end.Reason, Limit: end.Limit, AtLeast: end.AtLeast, LimitRun: end.LimitRun, Index: end.Index, Kind: end.Kind, Error: end.Error,
		FinalOutput: t.said, LastOutput: t.said,
		Cycles: r.cycle, Usage: r.Costs.Usage(), Result: t.given(&r.cfg, s, end.Output),
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
		advice = append(advice, tooLate(late))
	}
	o.NextSafeAction = strings.Join(advice, " ")
	return o
}

// leftInDoubt reports whether it is unknown if a call of the last cycle took effect,
// and the model has not learned that either.
func (s *calls) leftInDoubt() bool {
	return slices.ContainsFunc(s.list, func(c *call) bool { return c.result != nil && c.result.ErrorType == event.ErrorInDoubt })
}

// tooLate reports messages that came too late.
func tooLate(n int) string {
	if n == 1 {
		return "One message came too late; continue the run to have it read."
	}
	return strconv.Itoa(n) + " messages came too late; continue the run to have them read."
}

// grade separates what happened from what the owner considers a success.
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
	case isBudget(r), r == event.ReasonTenantBudget,
		r == event.ReasonStuck, r == event.ReasonTruncated, r == event.ReasonNoAnswerOrCall:
		return event.StatusStopped, false, false
	case r == event.ReasonCancelled:
		return event.StatusCancelled, false, false
	}
	return event.StatusFailed, false, false
}

// nextSafeAction returns the sentence that tells an owner how to continue. It mentions
// only what the run has had: a run whose first call was refused has no spending to look
// at.
func nextSafeAction(end *event.RunTerminatedBy, spent budget.Spent) string {
	switch r := end.Reason; {
	case isBudget(r) && end.Kind == tree.KindAbove:
		return "The limit is that of the run which started this one: raise " + end.Limit + " there, or give this agent less to do."
	case isBudget(r), stop.Kind(end.Kind).OfMoney():
		return afterLimit(end.Limit, spent)
	case end.Kind == kindInvalidAnswer:
		return "Read what was wrong with the answers; simplify the schema or say in the prompt how to fill it, and continue the run."
	case end.Limit == "approvals.timeout":
		return "Decide sooner or raise approvals.timeout, and continue the run."
	case end.Limit == "max_nudges":
		return "Read the last output; tell the agent in a new message what is missing, or raise max_nudges."
	case r == event.ReasonStuck:
		return afterCircle(stop.Pattern(end.Kind))
	case r == event.ReasonPolicyDenied && strings.HasPrefix(end.Kind, kindHook):
		return "Read why the hook did not let the run begin; change the task or what the hook asks for, and start again."
	case r == event.ReasonModelError && end.Error != nil:
		return afterModelError(llm.Class(end.Error.Class), spent)
	default:
		return advice(r)
	}
}

// afterLimit returns what to look at before a limit is raised.
func afterLimit(setting string, spent budget.Spent) string {
	raise := "; if it was worth it, continue the run with a higher " + setting + "."
	switch {
	case setting == budget.RequestTokens && spent.ToolCalls == 0:
		return "Allow larger requests, or shorten the prompt, the task or the list of tools, and continue the run."
	case setting == budget.RequestTokens:
		return "Allow larger requests, or shorter results with max_tool_result_chars, and continue the run."
	case setting == budget.WallTime:
		return "Check what took the time" + raise
	case setting == budget.IdleTime && spent.Turns == 0:
		return "No answer came for as long as " + setting + " allows: read why the model calls failed; fix the cause, use another model or raise the limit, and continue the run."
	case setting == budget.IdleTime:
		return "Nothing new came for as long as " + setting + " allows: read the last answers and results. Suggest another way, or raise the limit if a call needs longer, and continue the run."
	case spent.ModelCalls == 0 && budget.IsMoney(setting):
		return "Nothing was spent: the first call could already cost more than " + setting + " allows. " +
			"Raise it, lower max_tokens or choose a cheaper model, and continue the run."
	case spent.ModelCalls == 0:
		return "Nothing was used: the first call could already take more than " + setting + " allows. " +
			"Raise it or shorten the prompt and the task, and continue the run."
	case budget.IsMoney(setting):
		return "Check what the money was spent on" + raise
	}
	return "Check what was used" + raise
}

// afterCircle returns where to look for what kept the run from making progress.
func afterCircle(p stop.Pattern) string {
	switch p {
	case stop.SameError:
		return "Read why the last calls failed; fix the cause or suggest another way, and continue the run."
	case stop.Monologue:
		return "Read the last output; tell the agent in a message what its next step is or what to say when the task is done, and continue the run."
	case stop.UnchangedTree:
		return "The last edits and commands left the files unchanged. Suggest another way, and continue the run."
	}
	return "Read the repeated calls and their results; fix the cause or suggest another way, and continue the run."
}

func afterModelError(class llm.Class, spent budget.Spent) string {
	const kept = "continue the run; finished work is kept."
	switch class {
	case llm.ClassAuth:
		return "Check the API key and its permissions, and " + kept
	case llm.ClassQuota:
		return "Raise the quota at the provider or choose another model, and " + kept
	case llm.ClassContextOverflow:
		if spent.ToolCalls == 0 {
			return "Use a model with a larger window, or shorten the prompt, the task or the list of tools, and " + kept
		}
		return "Use a model with a larger window, or shorten the results with max_tool_result_chars, and " + kept
	case llm.ClassInvalid:
		return "Fix what the provider reports: the same request would be refused again. Then " + kept
	case llm.ClassThrottled, llm.ClassOverloaded, llm.ClassNetwork:
		return "Wait until the provider answers again or name a fallback, and " + kept
	}
	return advice(event.ReasonModelError)
}

func advice(r event.Reason) string {
	switch r {
	case event.ReasonMaxCycles:
		return "Check what the last cycles did; if they made progress, continue the run with a higher cycle limit."
	case event.ReasonNoAnswerOrCall:
		return "Read the last output; tell the agent in a new message what is missing."
	case event.ReasonRejected:
		return "Read why it was rejected; continue the run with a message that says what to do differently."
	case event.ReasonRepeatedFailure:
		return "Read why the last calls failed; fix the cause or suggest another way, and continue the run with a message."
	case event.ReasonPolicyDenied:
		return "Read which rule denied the call; change the permissions or the task, and start again."
	case event.ReasonToolUnavailable:
		return "Make the missing tool available again, and continue the run with a message."
	case event.ReasonModelError:
		return "Read the error and fix its cause, then continue the run; finished work is kept."
	case event.ReasonTruncated:
		return "Raise the output limit of the model, or ask for the work in smaller pieces, and continue the run."
	case event.ReasonEmptyResponse:
		return "Try another model, or rephrase the task."
	case event.ReasonTenantBudget:
		return "Raise the budget of the tenant in the file of tokens, or wait for its next period, and continue the run."
	case event.ReasonRefused:
		return "Read why the model declined; change the task or choose another model."
	case event.ReasonJudgeUnavailable:
		return "Fix the judge, and continue the run."
	case event.ReasonCancelled:
		return "Nothing is running; continue the run if it should go on."
	case event.ReasonInternal:
		return "This is a bug in Pawl. The run's events up to here are kept. Please report it."
	}
	return "Read the run's events to see what happened, then continue the run or start a new one."
}

func isBudget(r event.Reason) bool {
	return strings.HasPrefix(string(r), string(event.BudgetReason("")))
}

// maxInvalidAnswers is how many answers of a run may violate its schema. Each but the
// last goes back to the model with its problems.
const maxInvalidAnswers = 3

// kindInvalidAnswer is the class of the failure, and the kind of the end, of a run
// whose answers violated its schema.
const kindInvalidAnswer = "invalid_answer"

func invalidNudge(problem string) string {
	return "Your answer does not match the JSON schema of this task: " + problem +
		". Answer again with the whole JSON value and nothing else: no other words, no code fence."
}

// truncatedNudge requests the rest of a text, or for a schema a complete value: no
// model continues in the middle of one.
func (c *Config) truncatedNudge() string {
	if len(c.Schema) == 0 {
		return cutNudge
	}
	return "Your last answer was cut off at the output limit, so it is no whole JSON value. " +
		"Answer again with a shorter one that matches the schema."
}

// check folds the validation of the cycle's answer against the schema.
func (t *turn) check(r *run, d event.AnswerChecked) error {
	if r.phase != phaseSettled || len(r.cfg.Schema) == 0 && r.cfg.textSchema() == nil || d.Cycle != r.cycle || t.checked != nil {
		return fmt.Errorf("%w: the answer of cycle %d is checked in cycle %d", ErrMisfit, d.Cycle, r.cycle)
	}
	t.checked = &d
	if d.Problem != "" {
		t.invalid++
	}
	return nil
}
