package flow

import (
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

type counts event.StepCounts

func (c *counts) add(s event.StepStatus) {
	switch s {
	case event.StepStatusCompleted:
		c.Completed++
	case event.StepStatusFailed:
		c.Failed++
	case event.StepStatusSkipped:
		c.Skipped++
	case event.StepStatusCancelled:
		c.Cancelled++
	}
}

// endRun ends a run without remaining work.
func (m *Machine) endRun() {
	if m.Terminated == nil {
		m.requests.add("end", func() []machine.Action { return m.End(m.why()) }, nil)
	}
}

// ownReasons lists the failure classes of steps that become the run's reason.
var ownReasons = []event.Reason{event.ReasonConditionError, event.ReasonJudgeUnavailable, event.ReasonImpossible}

// why returns the reason and details of the run's end.
func (m *Machine) why() event.RunTerminatedBy {
	if m.late {
		return event.RunTerminatedBy{Reason: event.BudgetReason(planTimeout), Limit: planTimeout}
	}
	if m.cfg.Plan.Refine {
		return m.root.steps[0].refined()
	}
	if n := m.root.failed; n != nil {
		d := event.RunTerminatedBy{Reason: event.ReasonStepFailed, Step: n.id, Error: n.error}
		switch {
		case n.error == nil:
		case n.error.Limit != "":
			d.Reason, d.Limit = event.BudgetReason(n.error.Limit), n.error.Limit
			if d.LimitRun = n.error.LimitRun; d.LimitRun != "" {
				d.Kind = tree.KindAbove
			}
		case slices.Contains(ownReasons, event.Reason(n.error.Class)):
			d.Reason = event.Reason(n.error.Class)
		}
		return d
	}
	for _, n := range m.root.steps {
		if l := n.step().Loop; n.end.why != nil && n.end.why.Limit != "" && l.OnLimit == plan.LimitStopped {
			why := *n.end.why
			why.Step = n.id
			return why
		}
	}
	return event.RunTerminatedBy{Reason: event.ReasonFinalAnswer}
}

func (m *Machine) outcome() event.Outcome {
	o := m.Conclude()
	if m.cfg.Plan.Refine {
		return m.refinedOutcome(o)
	}
	steps := event.StepCounts(m.counts)
	o.Steps = &steps
	if !o.Completed {
		o.NextSafeAction = nextSafeAction(m.Terminated)
	}
	o.FinalOutput, o.Result = m.root.last()
	o.LastOutput = o.FinalOutput
	if word := m.coordinator.word; word != "" {
		o.FinalOutput = word
	}
	return o
}
