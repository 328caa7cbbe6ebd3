package engine

import (
	"errors"
	"net"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
)

// charged is what a call that failed is taken to have used. A provider that
// declined a call, and one that could not be reached, charges nothing; a call
// that broke off without a word about its usage is charged by what came of it,
// or by what was set aside for it (FIELD F27).
func charged(a machine.CallModel, partial *llm.Response, e *llm.Error) llm.Usage {
	switch {
	case partial != nil && !partial.Usage.Estimated:
		return partial.Usage
	case partial != nil:
		return budget.Unreported(a.Admission.Usage(), partial.Usage, len(partial.Parts.Text()))
	case sent(e):
		return budget.Unreported(a.Admission.Usage(), llm.Usage{}, 0)
	}
	return llm.Usage{}
}

// errBroken marks the failure of an adapter that may have made its call.
var errBroken = errors.New("engine: the model adapter broke")

// sent says that a failed call may have reached its provider, although nothing
// came back.
func sent(e *llm.Error) bool {
	if errors.Is(e, errBroken) {
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
