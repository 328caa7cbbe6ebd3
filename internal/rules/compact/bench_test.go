package compact_test

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/llm"
)

// big returns a history of about 200,000 tokens.
func big() (h history.History, m *compact.Meter) {
	m = new(compact.Meter)
	h.Append(talk(1800)...)
	messages, err := h.Messages()
	if err != nil {
		panic(err)
	}
	m.Measure(messages)
	return h, m
}

// oneMoreCycle adds a cycle to a history and projects and estimates it.
func oneMoreCycle(t testing.TB, h *history.History, m *compact.Meter) int {
	asked, answered := call("new", "fresh")
	h.Append(asked, answered)
	messages, err := h.Messages()
	if err != nil {
		t.Fatal(err)
	}
	_, total := m.Measure(messages)
	return total
}

func compactOnce(t testing.TB, strategy compact.Strategy, in compact.Situation) ([]*llm.Message, *event.HistoryCompressed) {
	return carry(t, compact.Settings{Strategy: strategy}, in, "what happened")
}

// fastest returns the processor time of the fastest of a few attempts, so that a busy
// machine does not fail the test.
func fastest(t *testing.T, do func()) time.Duration {
	best := time.Hour
	for range 20 {
		start := processor.Time(t)
		do()
		best = min(best, processor.Time(t)-start)
	}
	return best
}

func TestCompactionCostsNoTimeThatAPersonWouldNotice(t *testing.T) {
	if testing.Short() {
		t.Skip("measures how time grows")
	}
	h, m := big()
	if _, total := m.Measure(h.All()); total < 200_000 {
		t.Fatalf("the history has only %d tokens", total)
	}
	if took := fastest(t, func() { oneMoreCycle(t, &h, m) }); took > time.Millisecond {
		t.Errorf("one more cycle takes %s to project and estimate, at most 1ms allowed", took)
	}
	in := situation(talk(488)[:1000], 60_000)
	for _, strategy := range []compact.Strategy{"", compact.RollingWindow, compact.PeriodicSummary, compact.SummarizeOlder} {
		if took := fastest(t, func() { compactOnce(t, strategy, in) }); took > 20*time.Millisecond {
			t.Errorf("%s takes %s for 1,000 messages, at most 20ms allowed", strategy, took)
		}
	}
}
