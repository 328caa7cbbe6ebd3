package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/tool"
)

// endInternal ends a run whose machine cannot go on: it panicked, or refused
// an event, which is a defect of ours, or code of others ended the goroutine that
// drove it, which is one of theirs. The run must still keep what was paid for,
// settle its calls and have its one terminal event. The machine is not asked any
// more. late is what the effects brought that were under way.
func (d *driver) endInternal(ctx context.Context, cause error, late []event.Data) error {
	ctx = context.WithoutCancel(ctx)
	row, err := d.store.Run(ctx, d.run)
	if err != nil {
		return errors.Join(cause, err)
	}
	if len(d.staged) == 0 || d.staged[0].event.Seq != row.Seq+1 {
		d.staged, d.seq, d.head = d.staged[:0], row.Seq, row.Head
	}
	outcome := d.internalOutcome(cause, row)
	results := d.lateResults(late) // which ends the children
	closing := append(d.lateDraws(ctx, &outcome), d.lateCalls()...)
	closing = append(closing, results...)
	closing = append(closing, event.RunTerminatedBy{Reason: event.ReasonInternal, Error: outcome.Error}, event.RunCompleted{Outcome: outcome})
	for _, data := range closing {
		s, err := d.seal(data)
		if err != nil {
			return errors.Join(cause, err)
		}
		d.push(s)
	}
	status := journal.Status{State: journal.Ended, Detail: string(event.ReasonInternal), Cycles: outcome.Cycles}
	if status.Outcome, err = json.Marshal(outcome); err != nil {
		return errors.Join(cause, err)
	}
	status.Outcome, _ = d.withoutSecrets(status.Outcome)
	b := d.batch(status)
	b.Release = true
	pos, err := d.store.Append(ctx, b)
	if err != nil {
		return errors.Join(cause, d.storeFailed(err))
	}
	d.released = true
	d.publish(pos)
	d.final = machine.State{
		Phase: machine.Ended, Outcome: &outcome, Cycle: outcome.Cycles, Usage: outcome.Usage,
	}
	if outcome.Cost != nil {
		d.final.Cost = *outcome.Cost
	}
	return cause
}

func (d *driver) internalOutcome(cause error, row journal.Run) event.Outcome {
	o := event.Outcome{
		Status: event.StatusFailed, Reason: event.ReasonInternal, Cycles: row.Cycles,
		Error:          &event.Failure{Class: "internal", Message: cause.Error()},
		NextSafeAction: "This is a defect of Pawl; the run's events up to here are kept. Please report it.",
	}
	if errors.Is(cause, errEnded) {
		o.NextSafeAction = "Mend what a tool declares, or the model's adapter, so that it returns; then continue the run: everything paid for is kept."
	}
	// The machine may be broken, and even its state not readable.
	s, err := guard(func() (machine.State, error) { return d.machine.State(), nil },
		func(message string) error { return errors.New(message) })
	if err == nil {
		o.Cycles, o.Usage, o.Cost = s.Cycle, s.Usage, &s.Cost
	}
	return o
}

// lateDraws settles what is set aside for the calls of children, and adds what
// they used to the outcome, which is that of the whole tree.
func (d *driver) lateDraws(ctx context.Context, o *event.Outcome) []event.Data {
	var closing []event.Data
	for c := range d.open.all() {
		if c.child == "" {
			continue
		}
		committed, err := guard(func() ([]event.BudgetCommitted, error) { return d.unsettledDraws(ctx, c.child, true) },
			func(message string) error { return errors.New(message) })
		if err != nil {
			continue // the child's own journal says it
		}
		for _, used := range committed {
			closing = append(closing, used)
			if used.Usage == nil {
				continue
			}
			o.Usage = o.Usage.Add(*used.Usage)
			if o.Cost != nil {
				o.Cost = &llm.Cost{USD: o.Cost.USD + used.USD, Priced: o.Cost.Priced && used.Priced}
			}
		}
	}
	return closing
}

// lateCalls are the calls of an answer that nobody came to look at, so that what
// the model asked for is kept.
func (d *driver) lateCalls() []event.Data {
	var closing []event.Data
	for _, c := range d.open.unnoted() {
		kept := unresolved(machine.Resolve{CallID: c.CallID, Call: c})
		kept.Problem = &event.Problem{Type: event.ErrorCancelled, Message: beforeItRan}
		closing = append(closing, kept)
	}
	return closing
}

const beforeItRan = "the run ended before this call ran"

// lateResults settles the calls that are open: with what their tools brought,
// or with why there is nothing.
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
	for c := range d.open.all() {
		switch {
		case c.child != "":
			closing = append(closing, d.lateChild(c, late)...)
		case brought[c.id] != nil:
			closing = append(closing, brought[c.id])
		case c.started:
			closing = append(closing, unsettled(c, event.ErrorInDoubt, "the run ended while this call was running, "+
				"so it is not known whether it took effect"))
		default:
			closing = append(closing, unsettled(c, event.ErrorCancelled, beforeItRan))
		}
	}
	return closing
}

func unsettled(c openCall, kind event.ErrorType, message string) event.ToolResult {
	return event.ToolResult{
		CallID: c.id, Tool: c.tool, IsError: true, ErrorType: kind,
		Output: tool.ErrorOutput(kind, message, ""),
	}
}
