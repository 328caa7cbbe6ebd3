package loopbench

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/tool"
)

const (
	thousand       = 1000
	thousandCycles = 20
)

// BenchmarkThousandRuns drives a thousand runs at once in one process over one
// file: what a cycle costs, how long an append takes when all of them commit,
// and how much memory a run holds halfway, when all of them are in a tool.
func BenchmarkThousandRuns(b *testing.B) {
	for b.Loop() {
		file, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "journal.db"), sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		store := &timedStore{Store: file}
		e := engine.New(store, newMachine, engine.Options{})
		empty := bytesInUse()
		halfway := newMeeting(thousand)
		start := processor.Time(b)
		var all sync.WaitGroup
		for i := range thousand {
			all.Go(func() {
				if err := oneOfMany(e, fmt.Sprint(i), halfway); err != nil {
					b.Error(err)
				}
			})
		}
		<-halfway.complete
		held := bytesInUse() - empty
		close(halfway.over)
		all.Wait()
		cpu := processor.Time(b) - start
		e.Close()
		if err := file.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(cpu)/(thousand*thousandCycles), "cpu-ns/cycle")
		b.ReportMetric(held/thousand/(1<<10), "KiB/run")
		b.ReportMetric(float64(store.quantile(0.5)), "append-p50-ns")
		b.ReportMetric(float64(store.quantile(0.99)), "append-p99-ns")
	}
	b.ReportMetric(0, "ns/op")
}

// bytesInUse is what is in use on the heap and by goroutines, in bytes.
func bytesInUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// meeting is complete when all have come to it, and over when it is closed.
type meeting struct {
	mu             sync.Mutex
	missing        int
	complete, over chan struct{}
}

func newMeeting(n int) *meeting {
	return &meeting{missing: n, complete: make(chan struct{}), over: make(chan struct{})}
}

func (m *meeting) attend() {
	m.mu.Lock()
	if m.missing--; m.missing == 0 {
		close(m.complete)
	}
	m.mu.Unlock()
	<-m.over
}

// oneOfMany drives one run whose tool attends the meeting in its middle.
func oneOfMany(e *engine.Engine, id string, halfway *meeting) error {
	calls := 0
	set, err := tool.NewSet(tool.Tool{
		Name: "noop", Schema: noopSchema, Effect: event.EffectPure, ReadOnly: true,
		Run: func(context.Context, tool.Call) (tool.Result, error) {
			if calls++; calls == thousandCycles/2 {
				halfway.attend()
			}
			return tool.Result{Output: fmt.Sprint(id, " ", calls)}, nil
		},
	})
	if err != nil {
		return err
	}
	turn := 0
	client := &http.Client{Transport: inProcess(func(*http.Request) []byte {
		turn++
		return shortAnswer(turn, turn < thousandCycles)
	})}
	cfg := agent.Config{
		Targets: []agent.Target{{Model: "anthropic/claude-sonnet-4-5", Price: &llm.Price{}}}, Tools: set.Defs(), MaxTokens: 4096,
	}
	cfg.Limits.MaxCycles = thousandCycles + 1
	cfg.Policy.Declared = true
	started, err := agent.Start(cfg.WithDefaults(), llm.UserText("go"))
	if err != nil {
		return err
	}
	model := anthropic.New(anthropic.Options{APIKey: "k", HTTP: client})
	r, err := e.Start(context.Background(), started, perform.Env{
		Model: func(string) (llm.Model, string, error) { return model, "claude-sonnet-4-5", nil }, Tools: set,
	})
	if err != nil {
		return err
	}
	s, err := r.Wait(context.Background())
	if err == nil && s.Outcome.Cycles != thousandCycles {
		err = fmt.Errorf("run %s ended with %+v", id, s.Outcome)
	}
	return err
}

// timedStore is a store that remembers how long each append took.
type timedStore struct {
	journal.Store
	mu   sync.Mutex
	took []time.Duration
}

func (s *timedStore) Append(ctx context.Context, b journal.Batch) (int64, error) {
	start := time.Now()
	pos, err := s.Store.Append(ctx, b)
	took := time.Since(start)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = append(s.took, took)
	return pos, err
}

func (s *timedStore) quantile(q float64) time.Duration {
	slices.Sort(s.took)
	return s.took[int(float64(len(s.took))*q)]
}
