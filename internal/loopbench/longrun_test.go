package loopbench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/tool"
)

// longCycles is how many cycles the long run has.
const longCycles = 400

// BenchmarkLongRun measures what a request byte costs the loop: the CPU time of
// a run whose requests are large, less that of one whose requests are small,
// over the difference in bytes sent.
func BenchmarkLongRun(b *testing.B) {
	var slopes, constants []float64
	for b.Loop() {
		smallCPU, smallBytes := longRun(b, 10)
		largeCPU, largeBytes := longRun(b, 10_000)
		slopes = append(slopes, float64(largeCPU-smallCPU)/float64(largeBytes-smallBytes))
		constants = append(constants, float64(smallCPU)/longCycles)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(slopes), "cpu-ns/request-byte")
	b.ReportMetric(median(constants), "cpu-ns/cycle")
}

// longRun runs with tool results of a size and returns the CPU time it took
// and the bytes of all its requests.
func longRun(b *testing.B, size int) (time.Duration, int64) {
	b.Helper()
	output := strings.Repeat("x", size)
	set, err := tool.NewSet(tool.Tool{
		Name: "noop", Schema: noopSchema, Effect: event.EffectPure, ReadOnly: true, Concurrent: true,
		Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Output: output}, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	turn, sent := 0, new(atomic.Int64)
	client := &http.Client{Transport: inProcess(func(r *http.Request) []byte {
		sent.Add(r.ContentLength)
		turn++
		return shortAnswer(turn, turn < longCycles)
	})}
	e := engine.New(memory.New(nil), newMachine, engine.Options{})
	defer e.Close()
	cfg := agent.Config{
		Targets: []agent.Target{{Model: "anthropic/claude-sonnet-4-5", Price: &llm.Price{}}}, Tools: set.Defs(), MaxTokens: 4096,
	}
	cfg.Limits.MaxCycles, cfg.Limits.MaxToolCalls = longCycles+1, longCycles+1
	cfg.Policy.Declared = true
	started, err := agent.Start(cfg.WithDefaults(), llm.UserText("go"))
	if err != nil {
		b.Fatal(err)
	}
	model := anthropic.New(anthropic.Options{APIKey: "k", HTTP: client})
	start := processor.Time(b)
	r, err := e.Start(context.Background(), started, perform.Env{
		Model: func(string) (llm.Model, string, error) { return model, "claude-sonnet-4-5", nil }, Tools: set,
	})
	if err != nil {
		b.Fatal(err)
	}
	s, err := r.Wait(context.Background())
	if err != nil || s.Outcome.Cycles != longCycles {
		b.Fatalf("the run ended with %+v: %v", s.Outcome, err)
	}
	return processor.Time(b) - start, sent.Load()
}

func shortAnswer(turn int, call bool) []byte {
	var b bytes.Buffer
	sse(&b, "message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"usage":{"input_tokens":100,"output_tokens":1}}}`)
	sse(&b, "content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	sse(&b, "content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"on"}}`)
	sse(&b, "content_block_stop", `{"type":"content_block_stop","index":0}`)
	stop := "end_turn"
	if call {
		stop = "tool_use"
		sse(&b, "content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_%d","name":"noop","input":{}}}`, turn))
		sse(&b, "content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"n\":%d}"}}`, turn))
		sse(&b, "content_block_stop", `{"type":"content_block_stop","index":1}`)
	}
	sse(&b, "message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+stop+`","stop_sequence":null},"usage":{"output_tokens":10}}`)
	sse(&b, "message_stop", `{"type":"message_stop"}`)
	return b.Bytes()
}
