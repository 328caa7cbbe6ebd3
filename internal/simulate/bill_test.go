package simulate_test

import (
	"math/rand/v2"
	"net/http"
	"sync"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/llm"
)

// priceOf is that of one of the two models.
func priceOf(target string) *llm.Price {
	if target == "m/a" {
		return &llm.Price{Input: 3, Output: 15}
	}
	return &llm.Price{Input: 1, Output: 5}
}

// bill is what the providers charge in the end. They do not know about processes that
// die, answers that are not awaited any more, and reservations.
type bill struct {
	mu   sync.Mutex
	luck *rand.Rand
	owed budget.Amount
}

func newBill(seed int) *bill { return &bill{luck: rand.New(rand.NewPCG(uint64(seed), 37))} }

// whole is what a call takes that its provider works on to the end.
func (b *bill) whole(req *llm.Request) llm.Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return llm.Usage{Input: 1 + textBytes(req)/4, Output: 1 + b.luck.Int64N(int64(req.MaxTokens))}
}

// gateway has every other call that is overloaded fail in a gateway that had it
// handed on.
func (b *bill) gateway(e *llm.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.Class == llm.ClassOverloaded && b.luck.IntN(2) == 0 {
		e.Status = http.StatusGatewayTimeout
	}
}

// deaf reports whether a call is one that nothing stops.
func (b *bill) deaf() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.luck.IntN(8) == 0
}

func (b *bill) add(target string, u llm.Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owed = b.owed.Add(budget.Amount{USD: priceOf(target).Of(u), Input: u.Input, Output: u.Output})
}

// failed adds a call that failed. What a provider declines is free; where the
// connection broke, or a gateway stopped waiting, it may have worked on the call to
// its end.
func (b *bill) failed(target string, req *llm.Request, partial *llm.Response, e *llm.Error) {
	switch {
	case partial != nil:
		b.add(target, partial.Usage)
	case e.Status == http.StatusGatewayTimeout, e.Class == llm.ClassNetwork, e.Class == llm.ClassInterrupted:
		b.add(target, b.whole(req))
	}
}

// settled checks the account of a run, or of a tree, against the providers' charges: a
// run's recorded cost is never less, and no more is owed than the highest cap in money
// allowed. Models that use more than their reservation may exceed it if the usage is
// lost.
func (b *bill) settled(w *world, u llm.Usage, usd, most float64) {
	b.mu.Lock()
	owed := b.owed
	b.mu.Unlock()
	if account := (budget.Amount{USD: usd, Input: u.Input, Output: u.Output}); w.honest && owed.Exceeds(account) {
		w.violate("the providers ask for %+v, and the account holds %+v", owed, account)
	}
	if w.honest && owed.USD > most+1e-9 {
		w.violate("the providers ask for USD %v under a cap of %v", owed.USD, most)
	}
}
