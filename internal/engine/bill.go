package engine

import (
	"cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// bill is what a run's events say of the calls of models that it paid for: the
// sums, with those of its children, and the run's own call that is not settled yet.
// A machine that broke cannot be asked for it.
type bill struct {
	sums budget.Tracker
	// reserved is what is set aside for the run's own call, with an empty id for
	// nothing, and call its attempt while that has no answer. used is what it took,
	// once that is known.
	reserved event.BudgetReserved
	call     *event.ModelRequested
	used     llm.Usage
	cost     llm.Cost
}

func (b *bill) note(data event.Data) {
	switch x := data.(type) {
	case event.BudgetReserved:
		if x.Run == "" {
			*b = bill{sums: b.sums, reserved: x}
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
			*b = bill{sums: b.sums}
		case x.Usage != nil:
			b.sums = b.sums.Add(*x.Usage, llm.Cost{USD: x.USD, Priced: x.Priced})
		}
	case event.RunForked:
		*b = bill{}
	}
}

func (b *bill) took(u llm.Usage, c llm.Cost) {
	b.call, b.used, b.cost, b.sums = nil, u, c, b.sums.Add(u, c)
}

// lateModel settles the run's own call: with what it brought, or with what was set
// aside for it where nobody knows. Late are what the effects brought that were
// under way.
func (l *eventLog) lateModel(cause error, late []event.Data) []event.Data {
	var closing []event.Data
	b := l.bill
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
	if l.env.run.parent != "" {
		committed.Usage, committed.Priced = &b.used, b.cost.Priced
	}
	return append(closing, committed)
}

// lateAttempt is the settlement of the run's own call. An answer that the machine
// would not take is kept as the text that came: a journal that holds what a machine
// refuses cannot be read.
func (l *eventLog) lateAttempt(cause error, late []event.Data) event.ModelAttemptFailed {
	failed := event.ModelAttemptFailed{
		Attempt: l.bill.call.Attempt, Model: l.bill.call.Model, Purpose: l.bill.call.Purpose,
		Class: llm.ClassInterrupted, Message: "the run ended before this call was settled: " + cause.Error(),
	}
	if l.stages(event.TypeModelRequested) {
		return failed // and so it was never made
	}
	for _, data := range append(late, l.taking) {
		switch x := data.(type) {
		case event.ModelResponse:
			failed.Usage, failed.Cost = x.Usage, x.Cost
			failed.PartialText = l.env.partialText(llm.Parts(x.Parts))
			return failed
		case event.ModelAttemptFailed:
			failed.Usage, failed.Cost, failed.PartialText = x.Usage, x.Cost, x.PartialText
			failed.Message = cmp.Or(x.Message, failed.Message)
			return failed
		}
	}
	whole := completeOf(l.bill.reserved)
	failed.Usage, failed.Cost = *whole.Usage, llm.Cost{USD: whole.USD, Priced: whole.Priced}
	return failed
}
