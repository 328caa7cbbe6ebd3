package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/tool"
)

// endInternal ends a run whose machine cannot continue: it panicked or refused
// an event, which is a defect of Pawl, or code of others ended the goroutine
// that drove it. The run must still keep what was paid for, settle its calls and
// have its one terminal event. endInternal does not call the machine. late are
// the results of the effects that were under way.
func (d *driver) endInternal(ctx context.Context, cause error, late []event.Data) error {
	ctx = context.WithoutCancel(ctx)
	row, err := d.log.store.Run(ctx, d.run.id)
	if err != nil && !d.log.lease.unmade {
		return errors.Join(cause, err)
	}
	d.log.startOver(row)
	results := d.lateResults(late) // this ends the children
	closing := append(d.log.lateModel(cause, late), d.budget.late(ctx)...)
	closing = append(append(closing, d.log.lateCalls()...), results...)
	closing = append(closing, d.log.lateCommands(late)...)
	if err := d.log.pushAll(closing); err != nil {
		return errors.Join(cause, err)
	}
	outcome := d.internalOutcome(cause, row)
	if err := d.log.pushAll([]event.Data{event.RunTerminatedBy{Reason: event.ReasonInternal, Error: outcome.Error}, event.RunCompleted{Outcome: outcome}}); err != nil {
		return errors.Join(cause, err)
	}
	status := journal.Progress{State: journal.Ended, Detail: string(event.ReasonInternal), Cycles: outcome.Cycles}
	if status.Outcome, err = json.Marshal(outcome); err != nil {
		return errors.Join(cause, err)
	}
	status.Outcome, _ = d.env.Record.Secrets.JSON(status.Outcome)
	b := d.log.batch(status)
	b.Release = !d.log.lease.unmade
	pos, err := d.log.write(ctx, b)
	if err != nil {
		return errors.Join(cause, err)
	}
	d.log.publish(pos)
	d.result.final = machine.State{
		Phase: machine.Ended, Outcome: &outcome, Cycle: outcome.Cycles, Usage: outcome.Usage,
	}
	if outcome.Cost != nil {
		d.result.final.Cost = *outcome.Cost
	}
	return cause
}

// internalOutcome returns the run's outcome, once its events contain all that it
// paid for.
func (d *driver) internalOutcome(cause error, row journal.Run) event.Outcome {
	o := event.Outcome{
		Status: event.StatusFailed, Reason: event.ReasonInternal, Cycles: row.Cycles,
		Error:          &event.Failure{Class: "internal", Message: cause.Error()},
		NextSafeAction: "This is a bug in Pawl. The run's events up to here are kept. Please report it.",
		Usage:          d.log.paid.sums.Usage(),
	}
	if d.log.paid.sums.Calls() > 0 {
		cost := d.log.paid.sums.Cost()
		o.Cost = &cost
	}
	if errors.Is(cause, errEnded) {
		o.NextSafeAction = "Fix the tool or the model adapter so that it returns, then continue the run; finished work is kept."
	}
	// The machine may be broken, and State may panic.
	s, err := perform.Guard(func() (machine.State, error) { return d.machine.State(), nil },
		func(message string) error { return errors.New(message) })
	if err == nil {
		o.Cycles = s.Cycle
	}
	return o
}

// late settles what is reserved for the calls of children.
func (b *childBudget) late(ctx context.Context) []event.Data {
	var closing []event.Data
	for _, c := range b.log.children.All() {
		committed, err := perform.Guard(func() ([]event.BudgetCommitted, error) { return b.unsettled(ctx, c.Run, true) },
			func(message string) error { return errors.New(message) })
		if err != nil {
			continue // the child's own journal has it
		}
		for _, used := range committed {
			closing = append(closing, used)
		}
	}
	return closing
}

// lateCalls returns tool_call events for the calls of an answer that have none,
// so that the journal keeps what the model asked for.
func (l *eventLog) lateCalls() []event.Data {
	var closing []event.Data
	for _, c := range l.calls.Unnoted() {
		kept := perform.Unresolved(machine.Resolve{CallID: c.CallID, Call: c})
		kept.Problem = &event.Problem{Type: event.ErrorCancelled, Message: beforeItRan}
		closing = append(closing, kept)
	}
	return closing
}

const beforeItRan = "the run ended before this call ran"

// lateResults settles the open calls with the results of their tools, or with
// the reason why there is none.
func (d *driver) lateResults(late []event.Data) []event.Data {
	var closing []event.Data
	brought := map[string]event.Data{}
	for _, data := range late {
		switch r := data.(type) {
		case event.ToolResult:
			brought[r.CallID] = r
		case event.ToolAttemptFailed:
			brought[r.CallID] = r.Result
		}
	}
	answered := map[string]bool{}
	for _, c := range d.log.children.All() {
		closing = append(closing, d.children.late(c, late)...)
		answered[c.Call] = true
	}
	for c := range d.log.calls.All() {
		switch {
		case answered[c.ID] && slices.ContainsFunc(closing, func(data event.Data) bool { return settles(data, c.ID) }):
		case answered[c.ID]:
			closing = append(closing, unsettled(c, event.ErrorCancelled, "the run ended while this agent was at work"))
		case brought[c.ID] != nil:
			closing = append(closing, brought[c.ID])
		case c.Started:
			closing = append(closing, unsettled(c, event.ErrorInDoubt, "the run ended while this call was running, "+
				"so it is not known whether it took effect"))
		default:
			closing = append(closing, unsettled(c, event.ErrorCancelled, beforeItRan))
		}
	}
	return closing
}

func settles(data event.Data, call string) bool {
	r, ok := data.(event.ToolResult)
	return ok && r.CallID == call
}

func unsettled(c drive.OpenCall, kind event.ErrorType, message string) event.ToolResult {
	return event.ToolResult{
		CallID: c.ID, Tool: c.Tool, IsError: true, ErrorType: kind,
		Output: tool.ErrorOutput(kind, message, ""),
	}
}

// lateCommands settles the open commands if the machine broke: with their
// results, or with the reason why there is none.
func (l *eventLog) lateCommands(late []event.Data) []event.Data {
	var closing []event.Data
	for _, c := range l.commands {
		var finished event.Data = event.CommandFinished{
			ID: c.ID, Step: c.Step, ErrorType: event.ErrorInDoubt, Error: "the run ended while this command was running, so it is not known whether it took effect",
		}
		for _, data := range late {
			if x, ok := data.(event.CommandFinished); ok && x.ID == c.ID {
				finished = x
			}
		}
		closing = append(closing, finished)
	}
	return closing
}
