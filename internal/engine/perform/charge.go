package perform

import (
	"errors"
	"net"
	"net/http"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

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
