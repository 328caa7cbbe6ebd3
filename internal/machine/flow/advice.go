package flow

import (
	"strings"

	"github.com/pawlrun/pawl/event"
)

// nextSafeAction returns a sentence that explains how to continue a workflow that did
// not complete.
func nextSafeAction(end *event.RunTerminatedBy) string {
	const (
		again = ", and retry the run, which keeps what completed."
		anew  = ", and start the workflow again; a retry of this run keeps its file."
	)
	step, class := "the step "+end.Step, ""
	if end.Error != nil {
		class = end.Error.Class
	}
	switch r := end.Reason; {
	case end.Limit == planTimeout:
		return "Check which steps took the time; raise options.timeout, and start the workflow again."
	case strings.HasPrefix(string(r), string(event.BudgetReason(""))):
		return "Check what was used; if it was worth it, start the workflow again with a higher " + end.Limit + "."
	case r == event.ReasonCancelled:
		return "Nothing is running; start the workflow again, or retry the run, which keeps what completed."
	case r == event.ReasonRejected:
		return "Decide sooner, and start the workflow again."
	case r == event.ReasonMaxIterations, class == string(event.ReasonMaxIterations):
		return "Read what the last iteration of " + step + " said; raise its maxIterations or change what ends the loop" + anew
	case r == event.ReasonConditionError:
		return "Correct the expression of " + step + " in the file, and start the workflow again."
	case r == event.ReasonJudgeUnavailable:
		return "Read why the judge of " + step + " gave no verdict; fix that" + again
	case r == event.ReasonImpossible:
		return "Read why the judge calls the task of " + step + " impossible; change the task, and start the workflow again."
	case end.Error == nil:
		return "Read what happened to " + step + again
	case class == classTimeout:
		return "Raise the timeout of " + step + " or give it less to do" + anew
	case class == classNoResult:
		return "Say in the instructions of " + step + " that it ends with submit_result, or simplify its resultSchema" + anew
	}
	return "Read why " + step + " failed; fix the cause" + again
}
