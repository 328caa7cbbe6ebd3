package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
)

// rows: HAR-51, ALDO-15, ALDO-37, ALF-24, ALF-27
func TestTheOutcomeOfEveryReason(t *testing.T) {
	for _, tt := range []struct {
		end       event.RunTerminatedBy
		status    event.Status
		ok        bool
		completed bool
		advice    string
	}{
		{event.RunTerminatedBy{Reason: event.ReasonFinalAnswer}, event.StatusCompleted, true, true, ""},
		{event.RunTerminatedBy{Reason: event.ReasonConditionMet, Kind: "text-includes"}, event.StatusCompleted, true, true, ""},
		{event.RunTerminatedBy{Reason: event.ReasonConditionMet, Kind: "budget-exhausted", Limit: "usd_per_run"}, event.StatusStopped, true, false, "a higher usd_per_run"},
		{event.RunTerminatedBy{Reason: event.ReasonMaxCycles, Limit: "max_cycles"}, event.StatusStopped, false, false, "higher cycle limit"},
		{event.RunTerminatedBy{Reason: event.BudgetReason("max_tool_calls"), Limit: "max_tool_calls"}, event.StatusStopped, false, false, "a higher max_tool_calls"},
		{event.RunTerminatedBy{Reason: event.ReasonNoAnswerOrCall}, event.StatusStopped, false, false, "what is missing"},
		{event.RunTerminatedBy{Reason: event.ReasonNoAnswerOrCall, Limit: "max_nudges"}, event.StatusStopped, false, false, "max_nudges"},
		{event.RunTerminatedBy{Reason: event.ReasonRejected}, event.StatusFailed, false, false, "rejected"},
		{event.RunTerminatedBy{Reason: event.ReasonRepeatedFailure}, event.StatusFailed, false, false, "calls failed"},
		{event.RunTerminatedBy{Reason: event.ReasonStuck}, event.StatusStopped, false, false, "repeated"},
		{event.RunTerminatedBy{Reason: event.ReasonPolicyDenied}, event.StatusFailed, false, false, "permissions"},
		{event.RunTerminatedBy{Reason: event.ReasonToolUnavailable}, event.StatusFailed, false, false, "missing tool"},
		{event.RunTerminatedBy{Reason: event.ReasonModelError}, event.StatusFailed, false, false, "finished work is kept"},
		{event.RunTerminatedBy{Reason: event.ReasonTruncated}, event.StatusStopped, false, false, "output limit"},
		{event.RunTerminatedBy{Reason: event.ReasonEmptyResponse}, event.StatusFailed, false, false, "another model"},
		{event.RunTerminatedBy{Reason: event.ReasonRefused}, event.StatusFailed, false, false, "declined"},
		{event.RunTerminatedBy{Reason: event.ReasonJudgeUnavailable}, event.StatusFailed, false, false, "judge"},
		{event.RunTerminatedBy{Reason: event.ReasonCancelled}, event.StatusCancelled, false, false, "Nothing is running"},
		{event.RunTerminatedBy{Reason: event.ReasonInternal}, event.StatusFailed, false, false, "bug"},
	} {
		t.Run(string(tt.end.Reason)+tt.end.Kind, func(t *testing.T) {
			p := newPlay(t, agent.Config{})
			p.apply(tt.end)
			p.advance()
			o := p.outcome()
			if o.Status != tt.status || o.OK != tt.ok || o.Completed != tt.completed || o.Reason != tt.end.Reason || o.Limit != tt.end.Limit {
				t.Errorf("outcome %+v", o)
			}
			if o.Completed == (o.NextSafeAction != "") || !strings.Contains(o.NextSafeAction, tt.advice) {
				t.Errorf("next safe action %q", o.NextSafeAction)
			}
			if o.NextSafeAction != "" && !strings.HasSuffix(o.NextSafeAction, ".") {
				t.Errorf("%q is no sentence", o.NextSafeAction)
			}
		})
	}
}

// rows: ALF-27
func TestCostIsPricedWhileEveryPartOfItIs(t *testing.T) {
	cost := func(targets []agent.Target, play func(p *play)) *llm.Cost {
		p := newPlay(t, agent.Config{Targets: targets})
		play(p)
		p.cancel()
		return p.outcome().Cost
	}
	priced := agent.Target{Model: "m/a", Price: &llm.Price{Input: 1e6}}
	unpriced := agent.Target{Model: "m/b"}
	for _, tt := range []struct {
		name    string
		targets []agent.Target
		play    func(p *play)
		want    llm.Cost
	}{
		{"all priced", []agent.Target{priced}, func(p *play) { p.answer(asks("", "read a")) }, llm.Cost{USD: 2, Priced: true}},
		{"a model without a price", []agent.Target{unpriced}, func(p *play) { p.answer(asks("", "read a")) }, llm.Cost{}},
		{"priced, then not", []agent.Target{priced, unpriced}, func(p *play) {
			p.breaks(llm.ClassOverloaded, func(f *event.ModelAttemptFailed) { f.Cost = llm.Cost{USD: 1, Priced: true} })
			p.after(time.Second)
			p.answer(asks("", "read a"))
		}, llm.Cost{USD: 1}},
		{"not, then priced", []agent.Target{unpriced, priced}, func(p *play) {
			p.breaks(llm.ClassOverloaded)
			p.after(time.Second)
			p.answer(asks("", "read a"))
		}, llm.Cost{USD: 2}},
	} {
		if got := cost(tt.targets, tt.play); got == nil || *got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	p := newPlay(t, agent.Config{})
	p2 := emptyPlay(t)
	p2.apply(p.started())
	p2.apply(event.CancelRequested{})
	p2.advance()
	if c := p2.outcome().Cost; c != nil {
		t.Errorf("a run without a model call cost %+v", c)
	}
}

func (p *play) started() event.RunStarted {
	p.t.Helper()
	e, err := event.Decode(p.journal[0])
	if err != nil {
		p.t.Fatal(err)
	}
	return e.Data.(event.RunStarted)
}

// rows: ALF-37, ALF-38
func TestBackoffDoublesWithJitterWithinItsBounds(t *testing.T) {
	seen := map[int64]bool{}
	for run := range 40 {
		p := emptyPlay(t)
		started, err := agent.Start(config(agent.Config{}), llm.UserText("go"))
		if err != nil {
			t.Fatal(err)
		}
		// Runs differ in their ids, and so in their jitter.
		id := fmt.Sprint("run", run)
		m := agent.New()
		apply := func(d event.Data) {
			if err := m.Apply(&event.Event{Run: id, Time: p.now, Data: d}); err != nil {
				t.Fatal(err)
			}
		}
		apply(started)
		apply(event.CycleStart{Cycle: 1})
		for n := 1; n <= 4; n++ {
			apply(event.ModelRequested{Attempt: n, Model: "m/a"})
			apply(event.ModelAttemptFailed{Attempt: n, Model: "m/a", Class: llm.ClassOverloaded})
			retry, ok := record(m).(event.ModelRetrying)
			if !ok {
				t.Fatalf("attempt %d is not retried", n)
			}
			base := int64(200) << (n - 1)
			if retry.DelayMs < base || retry.DelayMs > base*5/4 {
				t.Errorf("retry %d waits %d ms, want %d to %d", n, retry.DelayMs, base, base*5/4)
			}
			seen[retry.DelayMs*1000/base] = true
			apply(retry)
		}
	}
	if len(seen) < 50 {
		t.Errorf("160 jitters have only %d values", len(seen))
	}
}

// rows: ALF-37
func TestTheWaitBeforeARetryGrowsToAMinuteAndStaysThere(t *testing.T) {
	p := newPlay(t, agent.Config{Limits: budget.Limits{MaxModelRetries: new(80), MaxWallSeconds: budget.None}})
	for n := 1; n <= 80; n++ {
		p.breaks(llm.ClassOverloaded)
		if wait := p.asleep.NotBefore.Sub(p.now); wait > 75*time.Second || n > 9 && wait < time.Minute {
			t.Errorf("retry %d waits %s", n, wait)
		}
		p.after(75 * time.Second)
	}
}
