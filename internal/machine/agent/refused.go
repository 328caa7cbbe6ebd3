package agent

import (
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

// failureCounts counts what has gone wrong with a run's calls in a row.
type failureCounts struct {
	// failures are the newest calls, as far as all of them failed, and answers
	// those that they came from.
	failures, answers int
	// deserted are the newest cycles, as far as none of their calls had its tool.
	deserted int
}

// maxDeserted is how many cycles in a row may ask only for tools that are not
// there any more: the model is told once and may find another way (HAR-84).
const maxDeserted = 2

// settled takes in the results of a cycle that had calls.
func (s *failureCounts) settled(calls []*call) {
	deserted, failed := true, false
	for _, c := range calls {
		switch {
		case !c.result.IsError:
			s.failures, s.answers, failed = 0, 0, false
		case ownFailure(c.result.ErrorType):
			s.failures, failed = s.failures+1, true
		}
		deserted = deserted && unavailable(c.result.ErrorType)
	}
	if failed {
		s.answers++
	}
	if s.deserted++; !deserted {
		s.deserted = 0
	}
}

// ownFailure reports whether a failure is the call's own, and not the run's.
func ownFailure(kind event.ErrorType) bool {
	switch kind {
	case "", event.ErrorTruncated, event.ErrorCancelled, event.ErrorBudget, event.ErrorInDoubt:
		return false
	}
	return true
}

func unavailable(kind event.ErrorType) bool {
	return kind == event.ErrorUnavailable || kind == event.ErrorWorkspace
}

// endedByRefusal ends the run on a call that was refused, where the owner wants
// that, each way of refusing with its own reason (HAR-83).
func (s *calls) endedByRefusal(cfg *Config) machine.Action {
	for _, c := range s.list {
		switch v, a := c.verdict, c.approval(); {
		case cfg.OnDenied == RefusedStop && v != nil && !permits(v.Decision):
			return fail(event.ReasonPolicyDenied, string(event.ErrorDenied), sentence(c.ref.Name+" was denied", v.Rule, v.Reason))
		case cfg.OnRejected == RefusedStop && a != nil && a.Kind == event.ApprovalRejected:
			return fail(event.ReasonRejected, string(event.ErrorRejected), sentence(c.ref.Name+" was rejected by "+a.Approver, a.Reason))
		}
	}
	return nil
}

// endedByFailures ends the run when too many calls failed one after the other
// (HAR-82), or when their tools are gone.
func (n *failureCounts) endedByFailures(cfg *Config, calls []*call) machine.Action {
	switch most := cfg.FailureThreshold; {
	case n.deserted >= maxDeserted:
		c := calls[len(calls)-1]
		return fail(event.ReasonToolUnavailable, string(c.result.ErrorType), "the tools that the model asks for are not there any more; the last was "+c.ref.Name)
	case most > 0 && n.failures >= most && n.answers >= cfg.FailureAnswers:
		return record(event.RunTerminatedBy{
			Reason: event.ReasonRepeatedFailure, Limit: "failure_threshold",
			Detail: fmt.Sprintf("%d calls failed in a row, the last with %s", n.failures, calls[len(calls)-1].result.ErrorType),
		})
	}
	return nil
}

// unfit is the result of a call that cannot run as asked. A tool that the
// run began with is not unknown when it is gone.
func (c *call) unfit(cfg *Config) event.ToolResult {
	p := c.resolved.Problem
	if p.Type == event.ErrorUnknownTool && slices.ContainsFunc(cfg.Tools, func(t llm.ToolDef) bool { return t.Name == c.ref.Name }) {
		return c.failed(event.ErrorUnavailable, "the tool "+c.ref.Name+" is not there any more; "+c.problem())
	}
	return c.failed(p.Type, c.problem())
}

// unread quotes arguments that could not be read, because the conversation does not
// hold them.
func (c *call) unread() string {
	if c.resolved.ArgsText == "" || c.resolved.Problem == nil {
		return ""
	}
	return " (" + c.resolved.Problem.Message + ")"
}

// endedByExpiry ends a run whose owner wants no more of it when nobody decides
// in time.
func (s *calls) endedByExpiry(cfg *Config) machine.Action {
	if cfg.Approvals.OnTimeout != TimeoutStop {
		return nil
	}
	for _, c := range s.list {
		if c.result.ErrorType == event.ErrorExpired {
			return record(event.RunTerminatedBy{
				Reason: event.ReasonRejected, Limit: "approvals.timeout", Detail: "nobody decided about " + c.ref.CallID + " in time",
			})
		}
	}
	return nil
}
