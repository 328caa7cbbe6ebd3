package engine

import (
	"cmp"
	"errors"
	"net"
	"net/http"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
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

// used is what an answer is charged: what its provider reported, else what came
// of it. Figures that no call can have are no report: less than nothing would
// give back what other calls have spent, and a call whose request, or whose
// answer, is said to be nothing would be free under any budget.
//
// More may have come than is left: a call that was not whole is not in a partial
// answer. streamed is the bytes of all that was told while it came, 0 where the
// answer is whole.
func used(a *machine.CallModel, r *llm.Response, streamed int) llm.Usage {
	u, n := reported(r.Usage), max(written(r.Parts), streamed)
	lacks := u.Estimated || u.Input == 0 || u.Output == 0 && n > 0
	if !lacks || n == 0 && r.Finish == llm.FinishPause {
		return u // a request that a service has queued has used nothing yet
	}
	return budget.Unreported(a.Admission.Usage(), u, n)
}

// mostTokens is more than any call can use, and little enough for sums of it.
const mostTokens = 1 << 40

// reported is a provider's report, or none where it cannot be one. Of a whole that
// is less than a part of it the part was left out, as some relays do that pass on
// the figures of a service with another habit.
func reported(u llm.Usage) llm.Usage {
	for _, n := range [...]int64{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.CacheWriteLong, u.Reasoning} {
		if n < 0 || n > mostTokens {
			return llm.Usage{Estimated: true}
		}
	}
	if cached := u.CacheRead + u.CacheWrite; u.Input > 0 && cached > u.Input {
		u.Input += cached
	}
	if u.Output > 0 && u.Reasoning > u.Output {
		u.Output += u.Reasoning
	}
	return u
}

// written is the bytes of what a model wrote. A byte is at most a token.
func written(parts llm.Parts) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			n += len(p.Text)
		case llm.Reasoning:
			n += max(len(p.Text), len(p.Signature), len(p.Raw))
		case llm.ToolCall:
			n += len(p.Name) + len(p.Args) + len(p.ArgsText)
		case llm.Item:
			n += len(p.Raw)
		}
	}
	return n
}

// charged is what a call that failed is taken to have used. A provider that
// declined a call, and one that could not be reached, charges nothing; a call
// that broke off, or was given up on the way, without a word about its usage is
// charged by what came of it, or by what was set aside for it.
func charged(a *machine.CallModel, partial *llm.Response, streamed int, e *llm.Error) llm.Usage {
	switch {
	case partial != nil:
		return used(a, partial, streamed)
	case sent(e):
		return budget.Unreported(a.Admission.Usage(), llm.Usage{}, 0)
	}
	return llm.Usage{}
}

// errBroken marks the failure of an adapter that may have made its call.
var errBroken = errors.New("engine: the model adapter broke")

// sent reports whether a failed call may have reached its provider, although
// nothing came back.
func sent(e *llm.Error) bool {
	if errors.Is(e, errBroken) || waitedInVain(e.Status) {
		return true
	}
	if e.Unsent || e.Status != 0 || e.Class != llm.ClassNetwork && e.Class != llm.ClassInterrupted {
		return false
	}
	if dial, ok := errors.AsType[*net.OpError](e); ok && dial.Op == "dial" {
		return false
	}
	_, unknown := errors.AsType[*net.DNSError](e)
	return !unknown
}

// waitedInVain reports whether by its status somebody on the way to the model had
// the whole request and gave up on the answer: a gateway (504), Cloudflare (524),
// or a service on what stands behind it (408). Like a connection that stalls, it
// says nothing of what was done meanwhile.
func waitedInVain(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusGatewayTimeout || status == 524
}
