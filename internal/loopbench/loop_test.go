// Package loopbench compares Pawl's loop with a bare one over HTTP and SSE on
// loopback, in the same run and against the same server.
package loopbench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/journal/sqlite"
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

// measure runs n loops at once and returns what one cycle cost this process.
func measure(b *testing.B, n int, loop func(id string) error) cost {
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
	total := float64(n * cycles)
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

// BenchmarkCycle measures CPU per cycle against the bare loop, round by round.
func BenchmarkCycle(b *testing.B) {
	for _, kind := range []string{"memory", "durable"} {
		for _, n := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/runs=%d", kind, n), func(b *testing.B) { compare(b, kind, n) })
		}
	}
}

func compare(b *testing.B, kind string, n int) {
	base := startServer(b)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128, MaxIdleConns: 256}}
	var store journal.Store = memory.New(nil)
	if kind == "durable" {
		s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "journal.db"), sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		store = s
	}
	defer store.Close()
	e := engine.New(store, newMachine, engine.Options{})
	defer e.Close()
	loop := pawlLoop(b, e, client, base)
	bareRun := func(id string) error {
		l := &bare{client: client, url: fmt.Sprintf("%s/%s/%d", base, id, cycles)}
		_, err := l.run("go")
		return err
	}
	measure(b, n, bareRun)
	measure(b, n, loop)
	var ratios, bareCPU, pawlCPU, extra []float64
	for b.Loop() {
		x, y := measure(b, n, bareRun), measure(b, n, loop)
		ratios = append(ratios, float64(y.cpu)/float64(x.cpu))
		bareCPU, pawlCPU = append(bareCPU, float64(x.cpu)), append(pawlCPU, float64(y.cpu))
		extra = append(extra, y.allocs-x.allocs)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(bareCPU), "bare-cpu-ns/cycle")
	b.ReportMetric(median(pawlCPU), "cpu-ns/cycle")
	b.ReportMetric(median(extra), "extra-allocs/cycle")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
