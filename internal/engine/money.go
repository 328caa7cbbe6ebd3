package engine

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
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
	if l.env.run.parent != "" {
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
			failed.PartialText = l.env.partialText(llm.Parts(x.Parts))
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

// Admission decides whether a model call may be paid, beyond the limits of the call's
// own run and of the runs above it: a limit on the tokens of a day over all runs would
// be one. An implementation is safe for concurrent use.
type Admission interface {
	// Admit is called before an attempt at a model call is made, with the most that the
	// attempt can use. An error refuses the attempt, which then fails with it and uses
	// nothing: an *[llm.Error] says by its class whether the run tries again. If there
	// is no error, paid is called once with what the attempt used. The run waits for
	// both.
	Admit(ctx context.Context, c ModelCall, most llm.Usage) (paid Paid, err error)
}

// Paid receives what an admitted attempt used. It may be nil.
type Paid func(llm.Usage, llm.Cost)

// admit asks the engine's Admission, if there is one.
func (env *environment) admit(ctx context.Context, a *machine.CallModel) (Paid, error) {
	if env.admission == nil {
		return nil, nil
	}
	paid, err := guard(func() (Paid, error) {
		return env.admission.Admit(ctx, ModelCall{Run: env.run.id, Cycle: a.Cycle, Attempt: a.Attempt, Target: a.Target}, a.Admission.Usage())
	}, func(message string) error { return errors.New("the admission of model calls " + message) })
	if err == nil {
		return paid, nil
	}
	refused, typed := errors.AsType[*llm.Error](err)
	if !typed {
		refused = &llm.Error{Class: llm.ClassQuota, Message: err.Error(), Err: err}
	}
	refused.Unsent = true
	return nil, refused
}

// settle reports what an attempt used.
func (p Paid) settle(attempt event.Data) {
	if p == nil {
		return
	}
	switch x := attempt.(type) {
	case event.ModelResponse:
		p(x.Usage, x.Cost)
	case event.ModelAttemptFailed:
		p(x.Usage, x.Cost)
	}
}

// used returns what an answer is charged: the reported usage, or else an
// estimate from the output. Impossible figures count as no report: negative ones
// would give back what other calls spent, and a request or an answer of zero
// tokens would make the call free.
//
// The provider may have sent more than the answer contains, because a partial
// answer omits incomplete calls. streamed is the number of bytes of all deltas,
// 0 for a complete answer.
func used(a *machine.CallModel, r *llm.Response, streamed int) llm.Usage {
	u, n := reported(r.Usage), max(written(r.Parts), streamed)
	lacks := u.Estimated || u.Input == 0 || u.Output == 0 && n > 0
	if !lacks || n == 0 && r.Finish == llm.FinishPause {
		return u // a queued request has used nothing yet
	}
	return budget.Unreported(a.Admission.Usage(), u, n)
}

// mostTokens is more than any call can use, and small enough that sums do not
// overflow.
const mostTokens = 1 << 40

// reported returns a provider's report, or nothing if it is impossible. Some
// relays report a whole without one of its parts; the sum is then corrected.
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

// written returns the bytes of a model's output. A byte is at most a token.
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

// charged returns what a failed call is taken to have used. A call that the
// provider declined, or that did not reach it, costs nothing. A call that broke
// off without a usage report costs what its output shows, or else what was
// reserved.
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
// there was no answer.
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

// waitedInVain reports whether an HTTP status means that a server on the way had
// the whole request and timed out waiting for the answer: a gateway (504),
// Cloudflare (524), or a service (408). As with a stalled connection, the model
// may have done the work.
func waitedInVain(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusGatewayTimeout || status == 524
}
