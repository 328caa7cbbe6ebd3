package tenants_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/tenants"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
)

// dollar is a price by which a token costs one USD.
func dollar(model string) *llm.Price {
	if model == "local/unpriced" {
		return nil
	}
	return &llm.Price{Input: 1e6, Output: 1e6}
}

// bench has runs of tokens with budgets, and any number of processes that drive them.
type bench struct {
	*testing.T
	store journal.Store
	path  string
}

func newBench(t *testing.T, budgets string) *bench {
	b := &bench{T: t, store: memory.New(nil), path: filepath.Join(t.TempDir(), "tokens.yaml")}
	b.write(budgets)
	return b
}

func (b *bench) write(budgets string) {
	b.Helper()
	hash := "sha256:" + strings.Repeat("0", 64)
	if err := os.WriteFile(b.path, []byte(strings.ReplaceAll(budgets, "HASH", hash)), 0o600); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) process() *tenants.Budgets {
	return tenants.New(b.store, &tokens.File{Path: b.path}, dollar, slog.New(slog.DiscardHandler))
}

// run makes a run that a token has started.
func (b *bench) run(id, token string) string {
	b.Helper()
	journaltest.StartOf(b.T, b.store, id, event.RunStarted{Kind: "Agent", Principal: principal(token)})
	return id
}

func principal(token string) event.Principal {
	return event.Principal{Name: token, Role: "editor", Proof: event.ProofToken}
}

func call(run, model string) perform.ModelCall {
	return perform.ModelCall{Run: run, Cycle: 1, Attempt: 1, Target: model}
}

func refusedAs(err error, class llm.Class) bool {
	refused, ok := errors.AsType[*llm.Error](err)
	return ok && refused.Class == class
}

const team = `
- {name: ann, role: editor, hash: "HASH", tenant: team, budget: {usd: 10, per: day}}
- {name: bob, role: editor, hash: "HASH", tenant: team, budget: {usd: 10, per: day}}
- {name: eve, role: editor, hash: "HASH", budget: {usd: 1, per: month, soft: true}}
- {name: sam, role: editor, hash: "HASH"}
`

// Two tokens of a tenant, driven by two processes, share one budget; what a call leaves
// is given back, and the rest is refused.
func TestTokensOfATenantShareABudgetAcrossProcesses(t *testing.T) {
	b := newBench(t, team)
	first, second := b.process(), b.process()
	anns, bobs := b.run("a", "ann"), b.run("b", "bob")
	for i, c := range []struct {
		process *tenants.Budgets
		run     string
		most    int64
		cost    float64
		refused bool
	}{
		{first, anns, 6, 2, false},
		{second, bobs, 9, 0, true},
		{second, bobs, 8, 5, false},
		{first, anns, 4, 0, true},
		{first, anns, 3, 3.5, false}, // costs more than it reserved
		{second, bobs, 1, 0, true},
	} {
		paid, err := c.process.Admit(t.Context(), call(c.run, "local/model"), llm.Usage{Input: c.most})
		if refusedAs(err, llm.ClassBudget) != c.refused || err == nil == c.refused {
			t.Fatalf("call %d: %v, refused is to be %t", i, err, c.refused)
		}
		if paid != nil {
			paid(llm.Usage{}, llm.Cost{USD: c.cost, Priced: true})
		}
	}
	var used *tenants.ExhaustedError
	if err := second.Check(t.Context(), principal("ann")); !errors.As(err, &used) || used.Tenant != "team" || used.Spent != 10.5 || used.USD != 10 {
		t.Errorf("a new run: %v", err)
	}
	for _, free := range []string{"sam", "eve"} {
		if err := second.Check(t.Context(), principal(free)); err != nil {
			t.Errorf("a new run of %s: %v", free, err)
		}
	}
}

func TestASoftBudgetCountsAndRefusesNothing(t *testing.T) {
	b := newBench(t, team)
	p, run := b.process(), b.run("e", "eve")
	for range 3 {
		paid, err := p.Admit(t.Context(), call(run, "local/model"), llm.Usage{Output: 5})
		if err != nil {
			t.Fatal(err)
		}
		paid(llm.Usage{}, llm.Cost{USD: 5, Priced: true})
	}
	b.write(strings.Replace(team, "soft: true", "soft: false", 1))
	var used *tenants.ExhaustedError
	if err := b.process().Check(t.Context(), principal("eve")); !errors.As(err, &used) || used.Spent != 15 {
		t.Errorf("what was counted: %v", err)
	}
}

func TestACallThatFitsLaterWaitsForOpenOnes(t *testing.T) {
	b := newBench(t, team)
	p, run := b.process(), b.run("a", "ann")
	open, err := p.Admit(t.Context(), call(run, "local/model"), llm.Usage{Input: 8})
	if err != nil {
		t.Fatal(err)
	}
	admitted := make(chan error, 1)
	go func() {
		_, err := p.Admit(t.Context(), call(run, "local/model"), llm.Usage{Input: 5})
		admitted <- err
	}()
	given, stop := context.WithCancel(t.Context())
	stop()
	if _, err := p.Admit(given, call(run, "local/model"), llm.Usage{Input: 5}); !refusedAs(err, llm.ClassInterrupted) {
		t.Errorf("a call that is cancelled while it waits: %v", err)
	}
	open(llm.Usage{}, llm.Cost{USD: 1, Priced: true})
	if err := <-admitted; err != nil {
		t.Errorf("after the open call cost less: %v", err)
	}
}

func TestOnlyCallsOfTokensWithBudgetsAreCounted(t *testing.T) {
	b := newBench(t, team)
	p := b.process()
	for _, c := range []struct {
		run, model string
		admitted   bool
	}{{b.run("s", "sam"), "local/unpriced", true}, {b.run("a", "ann"), "local/unpriced", false}, {b.run("e", "eve"), "local/unpriced", true}} {
		if _, err := p.Admit(t.Context(), call(c.run, c.model), llm.Usage{Input: 100}); err == nil != c.admitted {
			t.Errorf("run %s with %s: %v", c.run, c.model, err)
		}
	}
	journaltest.StartOf(t, b.store, "user", event.RunStarted{Kind: "Agent", Principal: event.Principal{Name: "ann", Proof: event.ProofUser}})
	if _, err := p.Admit(t.Context(), call("user", "local/model"), llm.Usage{Input: 100}); err != nil {
		t.Errorf("a user with the name of a token: %v", err)
	}
}

// However many calls of however many processes are open, what they reserved and spent
// stays within the budget.
func TestConcurrentCallsStayWithinTheBudget(t *testing.T) {
	b := newBench(t, `[{name: ann, role: editor, hash: "HASH", budget: {usd: 100, per: month}}]`)
	var spent atomic.Int64
	var all sync.WaitGroup
	for process := range 4 {
		p := b.process()
		for worker := range 4 {
			run := b.run(fmt.Sprintf("%d-%d", process, worker), "ann")
			all.Go(func() {
				for range 50 {
					paid, err := p.Admit(t.Context(), call(run, "local/model"), llm.Usage{Input: 3})
					if err != nil {
						return
					}
					spent.Add(2)
					paid(llm.Usage{}, llm.Cost{USD: 2, Priced: true})
				}
			})
		}
	}
	all.Wait()
	var used *tenants.ExhaustedError
	if err := b.process().Check(t.Context(), principal("ann")); err != nil && !errors.As(err, &used) {
		t.Fatal(err)
	}
	if got := spent.Load(); got > 100 || got < 80 {
		t.Errorf("%d USD were spent of 100", got)
	}
}
