package loopbench

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

const (
	// spoken is how many words an answer has, of which one comes every tenth of a
	// second: with the ten or so events of a cycle that is two events a second.
	spoken  = 50
	between = 100 * time.Millisecond
)

// slowly is a model that says a word every tenth of a second and then calls a tool.
type slowly struct{ begin time.Duration }

func (m *slowly) Generate(ctx context.Context, r *llm.Request) (*llm.Response, error) {
	return m.Stream(ctx, r, func(llm.Delta) {})
}

func (m *slowly) Stream(ctx context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	tick := time.NewTimer(m.begin)
	defer tick.Stop()
	m.begin = between
	text := ""
	for range spoken {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		tick.Reset(between)
		emit(llm.Delta{Kind: llm.DeltaText, Text: "some words "})
		text += "some words "
	}
	return &llm.Response{
		Parts:  llm.Parts{llm.Text{Text: text}, llm.ToolCall{ProviderID: "p", Name: "noop", Args: json.RawMessage(`{"n":1}`)}},
		Finish: llm.FinishTool, Usage: llm.Usage{Input: 100, Output: 100},
	}, nil
}

// BenchmarkThousandRunsWithReaders has a thousand runs speak for a minute, each to a
// reader of its stream with live events, in another process: how long an event takes
// from its time, which is before its commit, to the reader, how many are lost, and how
// the heap grows between 20 s and the end.
func BenchmarkThousandRunsWithReaders(b *testing.B) {
	for b.Loop() {
		store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "journal.db"), sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		e := engine.New(store, newMachine, engine.Options{})
		s := servingOn(b, store, e)
		var ids []string
		var runs sync.WaitGroup
		for i := range thousand {
			r, err := e.Start(context.Background(), begun(b), speaking(b, time.Duration(i)*5*time.Second/thousand))
			if err != nil {
				b.Fatal(err)
			}
			ids = append(ids, r.ID)
			runs.Go(func() { _, _ = r.Wait(context.Background()) })
		}
		all := s.readers(b, thousand, 0, func(i int) string { return "/v1/runs/" + ids[i] + "/events?deltas=true" })
		all.line(b, "ready")
		time.Sleep(20 * time.Second)
		early := heapInUse()
		time.Sleep(40 * time.Second)
		late := heapInUse()
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
		runs.Wait()
		time.Sleep(2 * time.Second) // the readers get the rest
		rows, err := store.Runs(b.Context(), journal.Filter{})
		if err != nil {
			b.Fatal(err)
		}
		durable := int64(0)
		for _, r := range rows {
			durable += r.Seq
		}
		s.stop()
		got := all.wait(b)
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
		var files syscall.Rlimit
		_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
		b.Logf("%d durable and %d live events, %d descriptors allowed", durable, got.Live, files.Cur)
		b.ReportMetric(float64(durable-got.Durable+got.Gaps), "lost")
		b.ReportMetric(float64(durable)/62/thousand, "events/s/run")
		b.ReportMetric(float64(got.P50), "p50-ns")
		b.ReportMetric(float64(got.P99), "p99-ns")
		b.ReportMetric(float64(got.LiveP99), "live-p99-ns")
		b.ReportMetric(late/early, "heap-ratio")
		b.ReportMetric(late/(1<<20), "heap-MiB")
	}
	b.ReportMetric(0, "ns/op")
}

func begun(b *testing.B) event.RunStarted {
	cfg := agent.Config{Targets: []agent.Target{{Model: "anthropic/claude-sonnet-4-5", Price: &llm.Price{}}}, MaxTokens: 4096, Tools: polledSet(b).Defs()}
	cfg.Limits.MaxCycles = 1000
	cfg.Policy.Declared = true
	started, err := agent.Start(cfg.WithDefaults(), llm.UserText("go"))
	if err != nil {
		b.Fatal(err)
	}
	return started
}

func speaking(b *testing.B, begin time.Duration) perform.Env {
	m := &slowly{begin}
	return perform.Env{Model: func(string) (llm.Model, string, error) { return m, "claude-sonnet-4-5", nil }, Tools: polledSet(b)}
}

func polledSet(b *testing.B) *tool.Set {
	n := 0
	set, err := tool.NewSet(tool.Tool{
		Name: "noop", Schema: noopSchema, Effect: event.EffectPure, ReadOnly: true, Polling: true,
		Run: func(context.Context, tool.Call) (tool.Result, error) {
			n++
			return tool.Result{Output: fmt.Sprint(n)}, nil
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	return set
}

// heapInUse is what is in use on the heap, in bytes.
func heapInUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
