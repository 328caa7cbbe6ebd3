// Package tenants bounds what the runs of a tenant, which a token of a server names,
// spend together in a day or a month. The sums are counters of the journal, so that all
// its processes share them.
package tenants

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// ExhaustedError is returned for a tenant whose budget has no room.
type ExhaustedError struct {
	Tenant string
	// USD is the budget, and Spent what is spent or reserved of it.
	USD, Spent float64
	// Until is when the next period begins.
	Until time.Time
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("the budget of %s is used up: $%.2f of $%.2f are spent or reserved, until %s",
		e.Tenant, e.Spent, e.USD, e.Until.Format(time.DateTime+" MST"))
}

// Budgets admits the model calls of all runs that this process drives. It is safe for
// concurrent use.
type Budgets struct {
	store journal.Store
	file  *tokens.File
	price func(model string) *llm.Price
	now   func() time.Time
	log   *slog.Logger

	mu sync.Mutex
	// principals holds who started the tree of a run.
	principals map[string]event.Principal
	purses     map[string]*purse
}

var _ perform.Admission = (*Budgets)(nil)

// maxPrincipals bounds the runs whose principals are remembered.
const maxPrincipals = 10_000

// New returns the budgets of a file of tokens. price returns the price of a model, nil
// if it is unknown.
func New(store journal.Store, file *tokens.File, price func(model string) *llm.Price, log *slog.Logger) *Budgets {
	return &Budgets{store: store, file: file, price: price, now: time.Now, log: log, principals: map[string]event.Principal{}, purses: map[string]*purse{}}
}

// purse is what this process has drawn of a counter for its calls. It is given back when
// no call is open, so the counter exceeds what was spent by the open calls of all
// processes, and by the rest of the purse of a process that was killed.
type purse struct {
	counter string

	mu sync.Mutex
	// left is drawn and not reserved by a call, and slice is the least that is drawn at
	// once, in billionths of a USD, so that many calls at once need few writes.
	left, slice int64
	calls       int
	// settled is closed when a call settles.
	settled chan struct{}
}

// nanos converts USD to billionths, rounded up, so that many small calls add up to no
// less than they cost.
func nanos(usd float64) int64 { return int64(math.Ceil(usd * 1e9)) }

// Check returns an [*ExhaustedError] if a new run of the principal would have no money.
func (b *Budgets) Check(ctx context.Context, p event.Principal) error {
	t := b.file.Budget(p)
	if t == nil || t.Soft {
		return nil
	}
	counter, until := t.Period(b.now())
	sum, _, err := b.count(ctx, counter, 0, 0)
	if err == nil && sum >= nanos(t.USD) {
		err = exhausted(t, sum, until)
	}
	return err
}

func exhausted(t *tokens.Budget, sum int64, until time.Time) error {
	return &ExhaustedError{Tenant: t.Tenant, USD: t.USD, Spent: float64(sum) / 1e9, Until: until}
}

var errNoCounters = errors.New("tenants: this journal keeps no counters, so no budget of a tenant holds")

func (b *Budgets) count(ctx context.Context, counter string, n, most int64) (sum int64, added bool, err error) {
	counts, may := b.store.(journal.KeepsCounters)
	if !may {
		return 0, false, errNoCounters
	}
	return counts.Count(ctx, counter, n, most)
}

// Admit reserves the most that a call can cost. If only open calls leave too little, it
// waits until one settles. A soft budget refuses nothing.
func (b *Budgets) Admit(ctx context.Context, c perform.ModelCall, most llm.Usage) (perform.Paid, error) {
	if !b.file.HasBudgets() {
		return nil, nil
	}
	p, err := b.principal(ctx, c.Run)
	if err != nil {
		return nil, err
	}
	t := b.file.Budget(p)
	if t == nil {
		return nil, nil
	}
	price := b.price(c.Target)
	switch {
	case price == nil && t.Soft:
		return nil, nil
	case price == nil:
		return nil, fmt.Errorf("%s has no known price, so the budget of %s cannot hold; name its price in the config file", c.Target, t.Tenant)
	}
	counter, until := t.Period(b.now())
	need, from := nanos(price.Of(most)), b.purse(counter)
	for {
		lack, err := b.reserve(ctx, t, from, need)
		switch {
		case err != nil:
			return nil, err
		case lack == nil:
			return func(_ llm.Usage, cost llm.Cost) { b.settle(context.WithoutCancel(ctx), from, need-nanos(cost.USD)) }, nil
		case lack.wait == nil:
			err := exhausted(t, lack.sum, until)
			return nil, &llm.Error{Class: llm.ClassBudget, Message: err.Error(), Err: err}
		}
		select {
		case <-lack.wait:
		case <-ctx.Done():
			return nil, &llm.Error{Class: llm.ClassInterrupted, Message: "the call waited for the budget of " + t.Tenant, Err: ctx.Err()}
		}
	}
}

// purse returns the purse for a counter. Those of earlier periods have no open call
// and hold nothing, and are dropped.
func (b *Budgets) purse(counter string) *purse {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.purses[counter]
	if p == nil {
		maps.DeleteFunc(b.purses, func(_ string, p *purse) bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.calls == 0
		})
		p = &purse{counter: counter, settled: make(chan struct{})}
		b.purses[counter] = p
	}
	return p
}

// lack is why a budget has no room for a call: the sum of its counter and, if calls of
// this process are open, a channel that is closed when one settles.
type lack struct {
	sum  int64
	wait <-chan struct{}
}

// reserve takes need from the purse, or returns why it cannot.
func (b *Budgets) reserve(ctx context.Context, t *tokens.Budget, p *purse, need int64) (*lack, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := nanos(t.USD)
	if t.Soft {
		most = math.MaxInt64
	}
	if missing := need - p.left; missing > 0 {
		sum, added, err := b.count(ctx, p.counter, max(missing, p.slice), most)
		if err == nil && !added && p.slice > missing {
			p.slice = 0
			sum, added, err = b.count(ctx, p.counter, missing, most)
		}
		switch {
		case err != nil:
			return nil, err
		case !added && p.calls > 0:
			return &lack{sum, p.settled}, nil
		case !added:
			return &lack{sum: sum}, nil
		}
		p.left += max(missing, p.slice)
		if p.slice = 0; !t.Soft {
			p.slice = (most - sum) / 100
		}
	}
	p.left -= need
	p.calls++
	return nil, nil
}

// settle returns what a call did not use, or takes what it used beyond its reservation.
func (b *Budgets) settle(ctx context.Context, p *purse, rest int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left += rest
	p.calls--
	if p.calls == 0 && p.left != 0 || p.left < 0 {
		if _, _, err := b.count(ctx, p.counter, -p.left, math.MaxInt64); err != nil {
			b.log.Error("the budget of a tenant could not be given back what a call left", "counter", p.counter, "error", err)
		}
		p.left = 0
	}
	close(p.settled)
	p.settled = make(chan struct{})
}

// principal returns who started the tree of a run.
func (b *Budgets) principal(ctx context.Context, run string) (event.Principal, error) {
	b.mu.Lock()
	p, known := b.principals[run]
	b.mu.Unlock()
	if known {
		return p, nil
	}
	row, err := b.store.Run(ctx, run)
	if err != nil {
		return p, err
	}
	for ev, err := range drive.AsStored(ctx, b.store, row.Placed().Root, event.TypeRunStarted, event.TypeRunForked) {
		if err != nil {
			return p, err
		}
		switch d := ev.Data.(type) {
		case event.RunStarted:
			p = d.Principal
		case event.RunForked:
			p = d.Principal
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.principals) >= maxPrincipals {
		clear(b.principals)
	}
	b.principals[run] = p
	return p, nil
}
