package loopbench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// started is how many runs of one call a round starts.
const started = 256

// starter is a machine that starts runs, some at once.
type starter struct {
	tree.Run
	width int
	// next is the first that was not started, ended how many have ended.
	next, ended int
}

func (s *starter) Apply(e *event.Event) error {
	switch e.Data.(type) {
	case event.ChildStarted:
		s.next++
	case event.ChildFinished:
		s.ended++
	}
	return s.Run.Apply(e)
}

func (s *starter) Next() []machine.Action {
	due, more := s.Due()
	if !more {
		return due
	}
	for i := s.next; i < started && i-s.ended < s.width; i++ {
		due = append(due, s.Start(machine.StartChild{ID: fmt.Sprint(i), Kind: agent.Kind, Name: "one", Input: json.RawMessage(`{}`)})...)
	}
	if s.ended == started {
		return s.End(event.RunTerminatedBy{Reason: event.ReasonConditionMet})
	}
	return due
}

// BenchmarkChild measures the CPU of runs of one call that another run starts against
// that of the same runs alone.
func BenchmarkChild(b *testing.B) {
	for _, kind := range []string{"memory", "durable"} {
		for _, n := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/runs=%d", kind, n), func(b *testing.B) {
				compareChildren(b, kind, n, func() (event.RunStarted, error) {
					return event.RunStarted{Vocabulary: event.Version, Machine: "starter/1", Kind: "Starter", Config: json.RawMessage(`{}`)}, nil
				})
			})
		}
	}
}

// compareChildren compares runs of one call alone, so many at once, with those that a
// run starts.
func compareChildren(b *testing.B, kind string, n int, starts func() (event.RunStarted, error)) {
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
	e := engine.New(store, func(version string) (machine.Machine, error) {
		if version == "starter/1" {
			return &starter{width: n}, nil
		}
		return versions.Make(version)
	}, engine.Options{})
	defer e.Close()
	begin := func() (event.RunStarted, perform.Env, error) {
		model := openaichat.New(openaichat.Options{APIKey: "k", BaseURL: base + "/1/0/0", HTTP: client})
		cfg := agent.Config{Targets: []agent.Target{{Model: "openai-chat/sim-1", Price: &llm.Price{Input: 3, Output: 15}}}, MaxTokens: 4096}
		cfg.Policy.Declared = true
		started, err := agent.Start(cfg.WithDefaults(), llm.UserText("go"))
		return started, perform.Env{Model: func(string) (llm.Model, string, error) { return model, "sim-1", nil }}, err
	}
	alone := func() {
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				for range started / n {
					finish(b, e, begin)
				}
			})
		}
		wg.Wait()
	}
	below := func() {
		env := perform.Env{Children: map[string]perform.Child{"one": {Begin: func(json.RawMessage) (event.RunStarted, perform.Env, error) { return begin() }}}}
		finish(b, e, func() (event.RunStarted, perform.Env, error) {
			started, err := starts()
			return started, env, err
		})
	}
	alone()
	below()
	var ratios, aloneCPU, childCPU []float64
	for b.Loop() {
		t0 := processor.Time(b)
		alone()
		t1 := processor.Time(b)
		below()
		t2 := processor.Time(b)
		ratios = append(ratios, float64(t2-t1)/float64(t1-t0))
		aloneCPU, childCPU = append(aloneCPU, float64(t1-t0)/started), append(childCPU, float64(t2-t1)/started)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(aloneCPU), "alone-cpu-ns/run")
	b.ReportMetric(median(childCPU), "child-cpu-ns/run")
}

func finish(b *testing.B, e *engine.Engine, begin func() (event.RunStarted, perform.Env, error)) {
	first, env, err := begin()
	if err != nil {
		b.Error(err)
		return
	}
	r, err := e.Start(context.Background(), first, env)
	if err != nil {
		b.Error(err)
		return
	}
	if s, err := r.Wait(context.Background()); err != nil || s.Outcome == nil || s.Outcome.Status != event.StatusCompleted {
		b.Errorf("%+v, %v", s.Outcome, err)
	}
}
