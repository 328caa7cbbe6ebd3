// Package loopbench compares Pawl's loop with a bare one over HTTP and SSE on
// loopback, in the same run and against the same server.
package loopbench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/tool"
)

// cycles is how many cycles one run has.
const cycles = 50

var noopSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)

func noop() tool.Tool {
	return tool.Tool{
		Name: "noop", Description: "Do nothing.", Schema: noopSchema, Effect: event.EffectPure, ReadOnly: true, Concurrent: true,
		Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Output: "ok"}, nil },
	}
}

// cost is what a loop used per cycle.
type cost struct {
	cpu    time.Duration
	allocs float64
}

// measure runs n loops of so many turns at once and returns what one turn cost this
// process.
func measure(b *testing.B, n, turns int, loop func(id string) error) cost {
	b.Helper()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := processor.Time(b)
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		wg.Go(func() {
			if err := loop(fmt.Sprintf("%d-%d", time.Now().UnixNano(), i)); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	cpu := processor.Time(b) - start
	runtime.ReadMemStats(&after)
	select {
	case err := <-errs:
		b.Fatal(err)
	default:
	}
	total := float64(n * turns)
	return cost{cpu: time.Duration(float64(cpu) / total), allocs: float64(after.Mallocs-before.Mallocs) / total}
}

func newMachine(string) (machine.Machine, error) { return agent.New(), nil }

// pawlLoop returns a loop that runs an agent on the engine.
func pawlLoop(b *testing.B, e *engine.Engine, client *http.Client, base string) func(id string) error {
	b.Helper()
	set, err := tool.NewSet(noop())
	if err != nil {
		b.Fatal(err)
	}
	return func(id string) error {
		model := anthropic.New(anthropic.Options{APIKey: "k", BaseURL: fmt.Sprintf("%s/%s/%d", base, id, cycles), HTTP: client})
		cfg := agent.Config{
			Targets: []agent.Target{{Model: "anthropic/claude-sonnet-4-5", Price: &llm.Price{Input: 3, Output: 15}}},
			Tools:   set.Defs(), MaxTokens: 4096,
		}
		cfg.Limits.MaxCycles = 2 * cycles
		cfg.Policy.Declared = true
		started, err := agent.Start(cfg.WithDefaults(), llm.UserText("go"))
		if err != nil {
			return err
		}
		r, err := e.Start(context.Background(), started, engine.Env{
			Model: func(string) (llm.Model, string, error) { return model, "claude-sonnet-4-5", nil }, Tools: set,
		})
		if err != nil {
			return err
		}
		s, err := r.Wait(context.Background())
		if err != nil {
			return err
		}
		if s.Outcome.Cycles != cycles || s.Outcome.Reason != event.ReasonFinalAnswer {
			return fmt.Errorf("run ended with %+v", s.Outcome)
		}
		return nil
	}
}

// BenchmarkCycle counts what a cycle allocates beyond the bare loop, where one engine and
// a prepared set of tools are there for all runs.
func BenchmarkCycle(b *testing.B) {
	base := startServer(b)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128, MaxIdleConns: 256}}
	store := memory.New(nil)
	defer store.Close()
	e := engine.New(store, newMachine, engine.Options{})
	defer e.Close()
	loop := pawlLoop(b, e, client, base)
	bareRun := func(id string) error {
		l := &bare{client: client, url: fmt.Sprintf("%s/%s/%d", base, id, cycles)}
		_, err := l.run("go")
		return err
	}
	measure(b, 1, cycles, bareRun)
	measure(b, 1, cycles, loop)
	var extra []float64
	for b.Loop() {
		extra = append(extra, measure(b, 1, cycles, loop).allocs-measure(b, 1, cycles, bareRun).allocs)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(extra), "extra-allocs/cycle")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
