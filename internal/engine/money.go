package engine

import (
	"cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// paid is what a run paid for model calls according to its events: the sums,
// including its children, and the run's own open call. It is needed when the
// machine is broken.
type paid struct {
	sums budget.Tracker
	// reserved is the reservation for the run's own call, with an empty id for none,
	// call its attempt until there is an answer, and used what the call took, once
	// known.
	reserved event.BudgetReserved
	call     *event.ModelRequested
	used     llm.Usage
	cost     llm.Cost
}

func (b *paid) note(data event.Data) {
	switch x := data.(type) {
	case event.BudgetReserved:
		if x.Run == "" {
			*b = paid{sums: b.sums, reserved: x}
		}
	case event.ModelRequested:
		b.call = &x
	case event.ModelResponse:
		b.took(x.Usage, x.Cost)
	case event.ModelAttemptFailed:
		b.took(x.Usage, x.Cost)
	case event.BudgetCommitted:
		switch {
		case x.Run == "":
			*b = paid{sums: b.sums}
		case x.Usage != nil:
			b.sums = b.sums.Add(*x.Usage, llm.Cost{USD: x.USD, Priced: x.Priced})
		}
	case event.RunForked:
		*b = paid{}
	}
}

func (b *paid) took(u llm.Usage, c llm.Cost) {
	b.call, b.used, b.cost, b.sums = nil, u, c, b.sums.Add(u, c)
}

// lateModel settles the run's own call with its result, or with the reserved
// amount if the result is unknown. late are the results of the effects that were
// under way.
func (l *eventLog) lateModel(cause error, late []event.Data) []event.Data {
	var closing []event.Data
	b := l.paid
	if b.call != nil {
		failed := l.lateAttempt(cause, late)
		closing = append(closing, failed)
		b.note(failed)
	}
	if b.reserved.ID == "" {
		return closing
	}
	committed := event.BudgetCommitted{
		ID: b.reserved.ID, USD: b.cost.USD, Input: b.used.Input, Output: b.used.Output, Estimated: b.used.Estimated,
	}
	if l.run.parent != "" {
		committed.Usage, committed.Priced = &b.used, b.cost.Priced
	}
	return append(closing, committed)
}

// lateAttempt is the settlement of the run's own call. If the machine refused
// the answer, only its text is kept, because a journal with an event that the
// machine refuses cannot be read.
func (l *eventLog) lateAttempt(cause error, late []event.Data) event.ModelAttemptFailed {
	failed := event.ModelAttemptFailed{
		Attempt: l.paid.call.Attempt, Model: l.paid.call.Model, Purpose: l.paid.call.Purpose,
		Class: llm.ClassInterrupted, Message: "the run ended before this call was settled: " + cause.Error(),
	}
	if l.stages(event.TypeModelRequested) {
		return failed // so the call was never made
	}
	for _, data := range append(late, l.taking) {
		switch x := data.(type) {
		case event.ModelResponse:
			failed.Usage, failed.Cost = x.Usage, x.Cost
			failed.PartialText = l.env.PartialText(llm.Parts(x.Parts))
			return failed
		case event.ModelAttemptFailed:
			failed.Usage, failed.Cost, failed.PartialText = x.Usage, x.Cost, x.PartialText
			failed.Message = cmp.Or(x.Message, failed.Message)
			return failed
		}
	}
	whole := completeOf(l.paid.reserved)
	failed.Usage, failed.Cost = *whole.Usage, llm.Cost{USD: whole.USD, Priced: whole.Priced}
	return failed
}
