package evaluation

import (
	"context"
	"fmt"
	"sync"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/llm"
)

// Budget bounds what all runs of an evaluation cost together. It is safe for concurrent
// use.
type Budget struct {
	// most is the limit in USD, [budget.None] for none.
	most  float64
	price func(model string) *llm.Price

	mu          sync.Mutex
	spent, open float64
	exhausted   bool
	// stop stops the evaluation, so that its runs park.
	stop func()
	// settled is closed when a call settles.
	settled chan struct{}
}

var _ perform.Admission = (*Budget)(nil)

// NewBudget returns a budget. price returns the price of a model, nil if it is unknown.
func NewBudget(usd float64, price func(model string) *llm.Price) *Budget {
	return &Budget{most: usd, price: price, stop: func() {}, settled: make(chan struct{})}
}

// begin sets what earlier calls cost, and what stops the evaluation.
func (b *Budget) begin(spent float64, stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent, b.stop = spent, stop
}

// Exhausted reports whether a call was refused.
func (b *Budget) Exhausted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.exhausted
}

// Admit reserves the most that a call can cost. If only the open calls leave too little,
// it waits until one settles. Otherwise it stops the evaluation: the runs park, and
// continue under a higher budget.
func (b *Budget) Admit(ctx context.Context, c perform.ModelCall, most llm.Usage) (perform.Paid, error) {
	if b.most == budget.None {
		return nil, nil
	}
	price := b.price(c.Target)
	if price == nil {
		return nil, fmt.Errorf("%s has no known price, so the budget of the evaluation cannot hold; name its price in the config file, or use --no-budget", c.Target)
	}
	usd := price.Of(most)
	for {
		b.mu.Lock()
		switch {
		case b.spent+b.open+usd <= b.most:
			b.open += usd
			b.mu.Unlock()
			return func(_ llm.Usage, cost llm.Cost) { b.settle(usd, cost.USD) }, nil
		case b.open == 0:
			b.exhausted = true
			b.stop()
		}
		settled := b.settled
		b.mu.Unlock()
		select {
		case <-settled:
		case <-ctx.Done():
			return nil, &llm.Error{Class: llm.ClassInterrupted, Message: "the budget of the evaluation is used up", Err: ctx.Err()}
		}
	}
}

func (b *Budget) settle(reserved, usd float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = max(b.open-reserved, 0)
	b.spent += usd
	close(b.settled)
	b.settled = make(chan struct{})
}
