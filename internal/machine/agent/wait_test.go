package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
)

// A wait that would outlast the wall time is not begun, and one that a lowered limit
// makes outlast it ends.
func TestAWallTimeThatComesDuringAWaitEndsTheWait(t *testing.T) {
	t.Run("for the model", func(t *testing.T) {
		p := newPlay(t, agent.Config{})
		p.breaks(llm.ClassThrottled, retryAfter(30*time.Second))
		p.raise("max_wall_time_seconds", 30)
		if o := p.outcome(); o.Limit != "max_wall_time_seconds" {
			t.Errorf("%+v", o)
		}
		p.check()
	})
	t.Run("for the model, with time enough", func(t *testing.T) {
		p := newPlay(t, agent.Config{})
		p.breaks(llm.ClassThrottled, retryAfter(30*time.Second))
		p.raise("max_wall_time_seconds", 31)
		p.after(30 * time.Second)
		p.concludes()
	})
	t.Run("for the model, where the owner is asked", func(t *testing.T) {
		p := newPlay(t, agent.Config{OnBudget: map[string]agent.OnBudget{"max_wall_time_seconds": agent.BudgetAsk}})
		p.breaks(llm.ClassThrottled, retryAfter(30*time.Second))
		p.raise("max_wall_time_seconds", 30)
		p.parkedAt("max_wall_time_seconds")
		if parked := p.live.State().Parked; parked.AtLeast != 0 || strings.Contains(parked.Detail, "at least") {
			t.Errorf("it asks for less than it has: %+v", parked)
		}
		p.raise("max_wall_time_seconds", 60)
		p.resume()
		p.after(30 * time.Second)
		p.concludes()
	})
	t.Run("for a tool", func(t *testing.T) {
		p := newPlay(t, agent.Config{})
		p.answer(asks("", "read a", "read b"))
		p.results("c1.2=B")
		p.flops("c1.1", 30*time.Second)
		p.raise("max_wall_time_seconds", 30)
		if p.call == nil || resultsOf(p.call.Request.Messages[2]) != agent.ErrorOutput(event.ErrorTimeout, "no answer")+" B" {
			t.Fatalf("the failure is not the call's result:\n%s", p.log.String())
		}
		p.concludes()
	})
	t.Run("for a summary", func(t *testing.T) {
		p := newPlay(t, windowed(compact.Settings{Strategy: compact.SummarizeOlder}))
		p.work(30)
		p.breaks(llm.ClassThrottled, retryAfter(30*time.Second))
		p.raise("max_wall_time_seconds", 30)
		if p.call == nil || p.call.Purpose != "" {
			t.Fatalf("the run does not go on without the summary:\n%s", p.log.String())
		}
		p.concludes()
	})
}

// concludes has the model give its answer, which must end the run.
func (p *play) concludes() {
	p.t.Helper()
	p.answer(says("done"))
	if o := p.outcome(); o.Reason != event.ReasonFinalAnswer {
		p.t.Errorf("%+v", o)
	}
	p.check()
}

// What was set aside for a call that has not begun was set aside under the
// limits of that time.
func TestLoweredLimitHoldsForWaitingCall(t *testing.T) {
	// A token costs one dollar, and "do it" is at most 53 tokens.
	for _, tt := range []struct {
		setting string
		value   float64
		want    event.Reason
	}{
		{"usd_per_run", 57, event.ReasonFinalAnswer},
		{"usd_per_run", 56, "budget:usd_per_run"},
		{"max_input_tokens", 53, event.ReasonFinalAnswer},
		{"max_input_tokens", 52, "budget:max_input_tokens"},
	} {
		p := newPlay(t, agent.Config{MaxTokens: 4, Limits: budget.Limits{USDPerRun: 1000, MaxInputTokens: 1000}})
		p.breaks(llm.ClassThrottled, retryAfter(30*time.Second))
		p.raise(tt.setting, tt.value)
		p.after(30 * time.Second)
		if p.call != nil {
			p.answer(says("done"))
		}
		if o := p.ended(); o.Reason != tt.want {
			t.Errorf("%s %v: %s, want %s\n%s", tt.setting, tt.value, o.Reason, tt.want, p.log.String())
		}
		p.check()
	}
}
