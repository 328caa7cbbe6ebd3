package loopbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// each is a workflow that does a step for each of so many items.
func each(items, atOnce int, step plan.Step, more ...plan.Step) (event.RunStarted, error) {
	static := make([]json.RawMessage, items)
	for i := range static {
		static[i] = json.RawMessage(fmt.Sprint(i))
	}
	l := &plan.Loop{Single: true, Items: &plan.Items{Static: static, Concurrency: atOnce}, Body: plan.Plan{Steps: []plan.Step{step}}}
	return flow.Start(flow.Config{Plan: plan.Plan{Steps: append([]plan.Step{{ID: "each", Loop: l}}, more...)}}, nil)
}

// BenchmarkStep measures the CPU of steps of one call against that of the same runs
// alone.
func BenchmarkStep(b *testing.B) {
	for _, kind := range []string{"memory", "durable"} {
		for _, n := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/runs=%d", kind, n), func(b *testing.B) {
				compareChildren(b, kind, n, func() (event.RunStarted, error) {
					return each(started, n, plan.Step{Agent: &plan.Agent{Name: "one", Instructions: "go"}})
				})
			})
		}
	}
}

// BenchmarkTakenUpAgain measures the CPU of taking up a run with ten thousand finished
// iterations, up to the call of the step that comes next.
func BenchmarkTakenUpAgain(b *testing.B) {
	store := memory.New(nil)
	begun := make(chan struct{}, 1)
	env := perform.Env{Children: map[string]perform.Child{
		"item": {Func: func(context.Context, json.RawMessage) (perform.Output, error) {
			return perform.Output{Text: "done"}, nil
		}},
		"last": {Func: func(ctx context.Context, _ json.RawMessage) (perform.Output, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return perform.Output{}, ctx.Err()
		}},
	}}
	first, err := each(10_000, 64, plan.Step{Func: &plan.Func{Name: "item"}}, plan.Step{ID: "last", DependsOn: []string{"each"}, Func: &plan.Func{Name: "last"}})
	if err != nil {
		b.Fatal(err)
	}
	e := engine.New(store, versions.Make, engine.Options{})
	defer e.Close()
	run, err := e.Start(b.Context(), first, env)
	if err != nil {
		b.Fatal(err)
	}
	park := func() {
		run.Interrupt()
		if s, err := run.Wait(context.Background()); s.Parked == nil {
			b.Fatal(s.Outcome, err)
		}
	}
	await := func() {
		select {
		case <-begun:
		case <-b.Context().Done():
			b.Fatal(errors.New("the last step did not begin"))
		}
	}
	await()
	park()
	var took []float64
	for b.Loop() {
		before := processor.Time(b)
		if run, err = e.Resume(b.Context(), run.RunID(), func(event.RunStarted) (perform.Env, error) { return env, nil }); err != nil {
			b.Fatal(err)
		}
		await()
		took = append(took, (processor.Time(b) - before).Seconds())
		park()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(took), "cpu-s")
}

// counting is a store that counts the appends to each run.
type counting struct {
	*memory.Store
	mu      sync.Mutex
	appends map[string]int
}

func (c *counting) Append(ctx context.Context, batch journal.Batch) (int64, error) {
	c.mu.Lock()
	c.appends[batch.Lease.Run]++
	c.mu.Unlock()
	return c.Store.Append(ctx, batch)
}

// BenchmarkStepInJournal counts what one more step of one call adds to the journal of
// its workflow.
func BenchmarkStepInJournal(b *testing.B) {
	steps := func(n int) (events, commits int) {
		begin := func() (event.RunStarted, perform.Env, error) {
			cfg := agent.Config{Targets: []agent.Target{{Model: "test/m", Price: &llm.Price{Input: 3, Output: 15}}}, MaxTokens: 4096}
			started, err := agent.Start(cfg.WithDefaults(), llm.UserText("go"))
			return started, perform.Env{Model: func(string) (llm.Model, string, error) {
				return scripted.New("test", scripted.Turn{Text: "done"}), "m", nil
			}}, err
		}
		p := plan.Plan{}
		for i := range n {
			step := plan.Step{ID: fmt.Sprint("s", i), Agent: &plan.Agent{Name: "one", Instructions: "go"}}
			if i > 0 {
				step.DependsOn = []string{p.Steps[i-1].ID}
			}
			p.Steps = append(p.Steps, step)
		}
		store := &counting{Store: memory.New(nil), appends: map[string]int{}}
		e := engine.New(store, versions.Make, engine.Options{NewID: func() func() string {
			var next atomic.Int64
			return func() string { return fmt.Sprint("r", next.Add(1)) }
		}()})
		defer e.Close()
		finish(b, e, func() (event.RunStarted, perform.Env, error) {
			started, err := flow.Start(flow.Config{Plan: p}, nil)
			return started, perform.Env{Children: map[string]perform.Child{"one": {Begin: func(json.RawMessage) (event.RunStarted, perform.Env, error) { return begin() }}}}, err
		})
		row, err := store.Run(b.Context(), "r1")
		if err != nil {
			b.Fatal(err)
		}
		store.mu.Lock()
		defer store.mu.Unlock()
		return int(row.Seq), store.appends["r1"]
	}
	for b.Loop() {
		events, commits := steps(1)
		moreEvents, moreCommits := steps(5)
		b.ReportMetric(float64(moreEvents-events)/4, "events/step")
		b.ReportMetric(float64(moreCommits-commits)/4, "commits/step")
	}
	b.ReportMetric(0, "ns/op")
}
