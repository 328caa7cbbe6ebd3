package engine

import (
	"errors"
	"net"
	"net/http"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

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
