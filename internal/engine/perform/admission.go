package perform

import (
	"context"
	"errors"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

// Admission decides whether a model call may be paid for, in addition to the limits of
// its run and of the run's ancestors. An example is a limit on the tokens of a day over
// all runs. An implementation must be safe for concurrent use.
type Admission interface {
	// Admit is called before each attempt at a model call with the most that the
	// attempt can use. An error refuses the attempt, which then fails with that error
	// and uses nothing; the class of an *[llm.Error] determines whether the run tries
	// again. If Admit succeeds, paid is called once with what the attempt used. The
	// attempt waits for Admit, which may block until ctx ends.
	Admit(ctx context.Context, c ModelCall, most llm.Usage) (paid Paid, err error)
}

// Paid receives what an admitted attempt used. It may be nil.
type Paid func(llm.Usage, llm.Cost)

// admit calls the engine's Admission, if there is one.
func (p *Performer) admit(ctx context.Context, a *machine.CallModel) (Paid, error) {
	if p.shared.Admission == nil {
		return nil, nil
	}
	paid, err := Guard(func() (Paid, error) {
		return p.shared.Admission.Admit(ctx, ModelCall{Run: p.Place.Run, Cycle: a.Cycle, Attempt: a.Attempt, Target: a.Target}, a.Admission.Usage())
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

// payment calls the Paid of an attempt once, even if the attempt is given up while its
// admission is still under way. It is safe for concurrent use.
type payment struct {
	mu      sync.Mutex
	paid    Paid
	settled bool
	usage   llm.Usage
	cost    llm.Cost
}

// open sets the Paid of an attempt.
func (b *payment) open(paid Paid) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paid = paid
	b.report()
}

// settle sets what the attempt used.
func (b *payment) settle(attempt event.Data) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch x := attempt.(type) {
	case event.ModelResponse:
		b.usage, b.cost = x.Usage, x.Cost
	case event.ModelAttemptFailed:
		b.usage, b.cost = x.Usage, x.Cost
	}
	b.settled = true
	b.report()
}

func (b *payment) report() {
	if b.settled && b.paid != nil {
		b.paid(b.usage, b.cost)
		b.paid = nil
	}
}
