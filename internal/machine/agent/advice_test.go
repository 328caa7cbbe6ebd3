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
	"github.com/pawlrun/pawl/stop"
)

// An advice is about this run's own past: to explain a cost when nothing was spent
// would mislead.
//
// rows: HAR-51
func TestTheAdviceSpeaksOfNothingThatTheRunHasNotHad(t *testing.T) {
	limited := func(l budget.Limits) agent.Config { return agent.Config{Limits: l} }
	stuck := func(p stop.Pattern) event.RunTerminatedBy {
		return event.RunTerminatedBy{Reason: event.ReasonStuck, Kind: string(p)}
	}
	for _, tt := range []struct {
		name string
		cfg  agent.Config
		// play brings the run to its end, or end is how it ends.
		play       func(p *play)
		end        event.RunTerminatedBy
		says, hush []string
	}{
		{name: "the first call is too dear", cfg: limited(budget.Limits{USDPerRun: 0.001}),
			says: []string{"Nothing was spent", "usd_per_run"}, hush: []string{"went into"}},
		{name: "the first call is too dear, for a condition", cfg: agent.Config{
			Limits: budget.Limits{USDPerRun: 0.001}, Conditions: []stop.Condition{{Kind: stop.BudgetExhausted}},
		}, says: []string{"Nothing was spent", "usd_per_run"}, hush: []string{"went into"}},
		{name: "the second call is too dear", cfg: limited(budget.Limits{USDPerRun: 3000}),
			play: func(p *play) { p.answer(used(1000, 1000, asks("", "read a"))); p.results("c1.1=A") },
			says: []string{"what the money was spent on", "usd_per_run"}, hush: []string{"Nothing was"}},
		{name: "the first call has too much input", cfg: limited(budget.Limits{MaxInputTokens: 1}),
			says: []string{"Nothing was used", "max_input_tokens"}, hush: []string{"what was used"}},
		{name: "the second call has too much input", cfg: limited(budget.Limits{MaxInputTokens: 500}),
			play: func(p *play) { p.answer(used(400, 1, asks("", "read a"))); p.results("c1.1=A") },
			says: []string{"what was used", "max_input_tokens"}},
		{name: "the first request is too large", cfg: limited(budget.Limits{MaxRequestTokens: 1}),
			says: []string{"shorten the prompt"}, hush: []string{"results"}},
		{name: "a request with a result is too large", cfg: limited(budget.Limits{MaxRequestTokens: 50}),
			play: func(p *play) {
				p.answer(asks("", "read a"))
				p.result("c1.1", event.ToolResult{Output: strings.Repeat("long ", 200)})
			},
			says: []string{"shorter results"}},
		{name: "no answer ever came", cfg: limited(budget.Limits{MaxIdleSeconds: 5}),
			play: func(p *play) { p.after(10 * time.Second); p.breaks(llm.ClassOverloaded) },
			says: []string{"No answer came", "failed"}, hush: []string{"results"}},
		{name: "nothing new came", cfg: limited(budget.Limits{MaxIdleSeconds: 5}),
			play: func(p *play) {
				p.answer(asks("", "read a"))
				p.results("c1.1=A")
				p.after(10 * time.Second)
				p.answer(asks("", "read a"))
			},
			says: []string{"Nothing new came", "last answers and results"}},
		{name: "the first request is longer than the window", play: func(p *play) {
			p.breaks(llm.ClassContextOverflow)
		}, cfg: agent.Config{Compact: compactOff}, says: []string{"shorten the prompt"}, hush: []string{"results"}},
		{name: "a hook refused the run", end: event.RunTerminatedBy{Reason: event.ReasonPolicyDenied, Kind: "hook:guard"},
			says: []string{"the hook did not let the run begin"}, hush: []string{"call"}},
		{name: "a rule refused a call", end: event.RunTerminatedBy{Reason: event.ReasonPolicyDenied},
			says: []string{"which rule denied the call"}},
		{name: "one call again and again", end: stuck(stop.SameCall), says: []string{"the repeated calls"}},
		{name: "two calls in turn", end: stuck(stop.AlternatingCalls), says: []string{"the repeated calls"}},
		{name: "failures of one kind", end: stuck(stop.SameError), says: []string{"failed"}, hush: []string{"repeated calls"}},
		{name: "words without a call", end: stuck(stop.Monologue), says: []string{"the last output"}, hush: []string{"calls"}},
		{name: "nothing changed", end: stuck(stop.UnchangedTree), says: []string{"left the files unchanged"}, hush: []string{"repeated"}},
		{name: "a cancel between two cycles", play: func(p *play) { p.cancel() },
			says: []string{"Nothing is running"}, hush: []string{"interrupted"}},
		{name: "a cancel after a crash amid a call", play: func(p *play) {
			p.answer(asks("", "send a"))
			p.crash()
			p.apply(event.RunResumed{Owner: "other"})
			p.cancel()
		}, says: []string{"Nothing is running", "interrupted", "check before you repeat it"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlay(t, tt.cfg)
			if tt.play != nil {
				tt.play(p)
			} else if tt.end.Reason != "" {
				p.apply(tt.end)
				p.advance()
			}
			got := p.outcome().NextSafeAction
			for _, want := range tt.says {
				if !strings.Contains(got, want) {
					t.Errorf("%q does not say %q", got, want)
				}
			}
			for _, wrong := range tt.hush {
				if strings.Contains(got, wrong) {
					t.Errorf("%q speaks of %q", got, wrong)
				}
			}
		})
	}
}

var compactOff = compact.Settings{Off: true}
