package loopbench

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
)

// conversation is a run's history with what makes a request of it: the meter
// that estimates it and the memo of its encoded messages.
type conversation struct {
	history history.History
	meter   compact.Meter
	request llm.Request
	model   *anthropic.Model
	cycles  int
}

// newConversation has so many cycles of one call behind it, of about 130 tokens
// each, and its memo is warm.
func newConversation(t testing.TB, cycles int) *conversation {
	t.Helper()
	c := &conversation{model: anthropic.New(anthropic.Options{APIKey: "none"})}
	c.request = llm.Request{Model: "claude-sonnet-4-5", System: "You work with care.", Memo: new(llm.Memo), MaxTokens: 1000}
	c.history.User("the task: mend it")
	for range cycles {
		c.grow()
	}
	c.project(t)
	return c
}

func (c *conversation) grow() {
	c.cycles++
	id := fmt.Sprint("c", c.cycles)
	c.history.Append(
		&llm.Message{Role: llm.RoleAssistant, Origin: "m/a", Parts: llm.Parts{
			llm.Text{Text: "I look at " + id},
			llm.ToolCall{CallID: id, ProviderID: "toolu_" + id, Name: "read", Args: json.RawMessage(`{"path":"` + id + `"}`)},
		}},
		&llm.Message{Role: llm.RoleTool, Parts: llm.Parts{
			llm.ToolResult{CallID: id, ProviderID: "toolu_" + id, Name: "read", Output: strings.Repeat("result ", 70)},
		}},
	)
}

// project makes and estimates the next request, and returns its tokens.
func (c *conversation) project(t testing.TB) int {
	messages, err := c.history.Messages()
	if err != nil {
		t.Fatal(err)
	}
	_, total := c.meter.Measure(messages)
	c.request.Messages = messages
	if c.request.Encoded, err = c.model.Encode(&c.request); err != nil {
		t.Fatal(err)
	}
	return total
}

// BenchmarkOneMoreCycleOn200kTokens is what a cycle on a long history costs
// until its request can be sent: the projection, the estimate and the bytes.
func BenchmarkOneMoreCycleOn200kTokens(b *testing.B) {
	c := newConversation(b, 1600)
	if total := c.project(b); total < 200_000 {
		b.Fatalf("the history has only %d tokens", total)
	}
	took := spell(b, func() { c.grow(); c.project(b) })
	b.ReportMetric(took, "ms/cycle")
}

// spell is the median of what doing something took, in milliseconds: of each
// iteration of the benchmark 20 times.
func spell(b *testing.B, do func()) float64 {
	var all []float64
	for b.Loop() {
		for range 20 {
			start := time.Now()
			do()
			all = append(all, float64(time.Since(start))/float64(time.Millisecond))
		}
	}
	b.ReportMetric(0, "ns/op")
	return median(all)
}

// TestOneMoreCycleCostsWhatIsNew is the gate on it: the allocations do not grow
// with the history, but for a slice of its segments.
func TestOneMoreCycleCostsWhatIsNew(t *testing.T) {
	const most = 80
	for _, cycles := range []int{16, 1600} {
		c := newConversation(t, cycles)
		if got := testing.AllocsPerRun(50, func() { c.grow(); c.project(t) }); got > most {
			t.Errorf("one more cycle on %d allocates %v times, at most %d allowed", cycles, got, most)
		}
	}
}

// BenchmarkCompact1000Messages is a compaction without its model call.
func BenchmarkCompact1000Messages(b *testing.B) {
	for _, strategy := range []compact.Strategy{"", compact.RollingWindow, compact.PeriodicSummary, compact.SummarizeOlder} {
		name := string(strategy)
		if name == "" {
			name = "default"
		}
		b.Run(name, func(b *testing.B) {
			c := newConversation(b, 500)
			messages := c.history.All()[:1000]
			b.ReportMetric(spell(b, func() { compactOnce(b, strategy, messages) }), "ms")
		})
	}
}

func compactOnce(t testing.TB, strategy compact.Strategy, messages []*llm.Message) {
	var m compact.Meter
	sizes, _ := m.Measure(messages)
	in := compact.Situation{Messages: messages, Sizes: sizes, Overhead: 10, Window: 60_000, Trigger: event.CompressThreshold}
	plan := compact.Settings{Strategy: strategy}.Next(in)
	d := plan.Change
	if plan.Summary != nil {
		d = in.Summarized(*d, "what happened")
	}
	if d == nil {
		t.Fatal("nothing was done")
	}
	after, err := compact.Apply(messages, *d)
	if err != nil || len(after) == 0 || d.TokensAfter >= d.TokensBefore {
		t.Fatalf("%+v, %v", d, err)
	}
}
