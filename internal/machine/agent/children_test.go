package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

// hires begins the children "k1" and "k2", as a driver does.
func (p *play) hires() {
	p.t.Helper()
	p.answer(asks("", "hire a", "hire b"))
	for id, child := range map[string]string{"c1.1": "k1", "c1.2": "k2"} {
		p.apply(event.ToolStarted{CallID: id, Attempt: 1})
		p.apply(event.ChildStarted{CallID: id, Child: child})
	}
}

// A run whose children all wait parks for the reason that needs the most from a person,
// and sleeps no longer than any of them.
func TestARunWhoseChildrenHaveParkedParksAsTheOneThatNeedsMost(t *testing.T) {
	soon, late := epoch.Add(time.Hour), epoch.Add(2*time.Hour)
	approval := event.ChildParked{Reason: event.ParkApproval, CallIDs: []string{"c1.1"}}
	input := event.ChildParked{Reason: event.ParkInput, ParentLimit: "usd_per_run"}
	interrupted := event.ChildParked{Reason: event.ParkInterrupted}
	pausedSoon := event.ChildParked{Reason: event.ParkPaused, Until: &soon}
	pausedLate := event.ChildParked{Reason: event.ParkPaused, Until: &late}
	for name, tt := range map[string]struct {
		one, other event.ChildParked
		want       event.RunParked
	}{
		"a decision before a raise":      {approval, input, event.RunParked{Reason: event.ParkApproval}},
		"a raise before a pause":         {input, pausedSoon, event.RunParked{Reason: event.ParkInput, Until: &soon, Limit: "usd_per_run"}},
		"a pause before an interruption": {pausedLate, interrupted, event.RunParked{Reason: event.ParkPaused, Until: &late}},
		"the shorter of two pauses":      {pausedLate, pausedSoon, event.RunParked{Reason: event.ParkPaused, Until: &soon}},
		"an interruption like any other": {interrupted, interrupted, event.RunParked{Reason: event.ParkInterrupted}},
	} {
		for _, order := range [][2]event.ChildParked{{tt.one, tt.other}, {tt.other, tt.one}} {
			p := newPlay(t, agent.Config{Dispatch: agent.ParallelAll})
			p.hires()
			for i, d := range order {
				d.CallID, d.Child = []string{"c1.1", "c1.2"}[i], []string{"k1", "k2"}[i]
				if s := p.live.State(); s.Phase != machine.Running {
					t.Fatalf("%s: parked while %s goes:\n%s", name, d.Child, p.log.String())
				}
				p.command(d)
			}
			got := p.live.State().Parked
			if got == nil || got.Reason != tt.want.Reason || got.Limit != tt.want.Limit || (got.Until == nil) != (tt.want.Until == nil) ||
				got.Until != nil && !got.Until.Equal(*tt.want.Until) {
				t.Errorf("%s: %+v\n%s", name, got, p.log.String())
			}
		}
	}
}

// While a child goes, its run keeps it going and leaves alone what has parked.
func TestAParkedChildIsLeftAloneWhileItsSiblingGoes(t *testing.T) {
	p := newPlay(t, agent.Config{Dispatch: agent.ParallelAll})
	p.hires()
	p.command(event.ChildParked{CallID: "c1.1", Child: "k1", Reason: event.ParkPaused})
	var kept []string
	for _, a := range p.live.Next() {
		if a, ok := a.(machine.StartChild); ok && a.Call.Attempt == 1 {
			kept = append(kept, a.Child)
		}
	}
	if !slices.Equal(kept, []string{"k2"}) {
		t.Errorf("kept going are %q\n%s", kept, p.log.String())
	}
}

// A resume of a run resumes its children.
func TestARunThatIsTakenUpAgainWakesItsChildren(t *testing.T) {
	p := newPlay(t, agent.Config{Dispatch: agent.ParallelAll})
	p.hires()
	p.command(event.ChildParked{CallID: "c1.1", Child: "k1", Reason: event.ParkPaused})
	p.command(event.ChildParked{CallID: "c1.2", Child: "k2", Reason: event.ParkPaused})
	p.resume()
	var woken []string
	for _, a := range p.live.Next() {
		if a, ok := a.(machine.StartChild); ok {
			woken = append(woken, a.Child)
		}
	}
	if !slices.Equal(woken, []string{"k1", "k2"}) {
		t.Errorf("woken are %q\n%s", woken, p.log.String())
	}
}

// The children of a run that is cancelled end before it does, those that wait
// too; one that has its result is left alone.
func TestACancelEndsTheChildrenThatAreOpen(t *testing.T) {
	p := newPlay(t, agent.Config{Dispatch: agent.ParallelAll})
	p.answer(asks("", "hire a", "hire b", "hire c", "get d"))
	for id, child := range map[string]string{"c1.1": "k1", "c1.2": "k2", "c1.3": "k3"} {
		p.apply(event.ToolStarted{CallID: id, Attempt: 1})
		p.apply(event.ChildStarted{CallID: id, Child: child})
	}
	p.apply(event.ChildFinished{CallID: "c1.1", Child: "k1"})
	p.apply(event.ToolResult{CallID: "c1.1", Tool: "hire", Output: "done"})
	p.apply(event.ChildParked{CallID: "c1.2", Child: "k2", Reason: event.ParkPaused})
	p.cancel()
	var ended []string
	for _, a := range p.live.Next() {
		a, ok := a.(machine.CancelChild)
		if !ok {
			t.Fatalf("a cancelled run does %+v", a)
		}
		ended = append(ended, a.Child)
		if a.Call.CallID != map[string]string{"k2": "c1.2", "k3": "c1.3"}[a.Child] || a.Reason != "the run that started this one was cancelled: enough" {
			t.Errorf("%+v", a)
		}
	}
	if !slices.Equal(ended, []string{"k2", "k3"}) {
		t.Errorf("ended are %q\n%s", ended, p.log.String())
	}
	for id, child := range map[string]string{"c1.2": "k2", "c1.3": "k3"} {
		p.apply(event.ChildFinished{CallID: id, Child: child})
		p.apply(event.ToolResult{CallID: id, Tool: "hire", IsError: true, ErrorType: event.ErrorCancelled})
	}
	p.advance()
	if o := p.outcome(); o.Reason != event.ReasonCancelled {
		t.Errorf("%+v", o)
	}
	p.check()
}

// A child has read what its run has, and answers as a tool of the run would.
func TestAChildBeginsWithWhatItsRunHasTakenIn(t *testing.T) {
	p := newPlay(t, agent.Config{Limits: budget.Limits{MaxResultChars: 700}})
	meet(p)
	p.answer(asks("", "hire a"))
	begins := func(attempt int, child string) {
		t.Helper()
		next := p.live.Next()
		if len(next) != 1 {
			t.Fatalf("%+v", next)
		}
		a, ok := next[0].(machine.StartChild)
		if !ok || a.Child != child || a.Call.Attempt != attempt || a.Call.MaxResultChars != 700 || a.Call.Key == "" {
			t.Errorf("%+v", next[0])
		}
		if got := a.Taint; got.Untrusted == nil || got.Private == nil || got.Untrusted.CallID != "c1.1" {
			t.Errorf("it begins with %+v", got)
		}
	}
	begins(1, "")
	p.apply(event.ToolStarted{CallID: "c3.1", Attempt: 1})
	p.apply(event.ChildStarted{CallID: "c3.1", Child: "k1"})
	p.crash()
	p.resume()
	begins(1, "k1")
}

// A parked child is left alone, whatever it waits for, until it waits no more.
func TestAParkedChildGoesOnOnceItWaitsNoMore(t *testing.T) {
	p := newPlay(t, agent.Config{Dispatch: agent.ParallelAll})
	p.hires()
	keeps := func(want ...string) {
		t.Helper()
		var kept []string
		for _, a := range p.live.Next() {
			if a, ok := a.(machine.StartChild); ok {
				kept = append(kept, a.Child)
			}
		}
		if !slices.Equal(kept, want) {
			t.Errorf("kept going are %q, want %q", kept, want)
		}
	}
	p.apply(event.ChildParked{CallID: "c1.1", Child: "k1", Reason: event.ParkApproval, CallIDs: []string{"x"}})
	p.apply(event.ChildWaiting{CallID: "c1.1", Child: "k1", Waiting: true})
	keeps("k2")
	p.apply(event.ChildWaiting{CallID: "c1.1", Child: "k1"})
	keeps("k1", "k2")
}

// What a child brings forth is progress of the run that started it.
func TestARunIsNotIdleWhileItsChildWorks(t *testing.T) {
	p := newPlay(t, agent.Config{Dispatch: agent.ParallelAll, Limits: budget.Limits{MaxIdleSeconds: 10}})
	p.hires()
	p.after(9 * time.Second)
	p.command(event.BudgetReserved{ID: "1", Run: "k1"})
	p.command(event.BudgetCommitted{ID: "1", Run: "k1", Usage: &llm.Usage{Input: 1}})
	if d := p.live.State().Deadline; d.At.Sub(p.now) != 10*time.Second {
		t.Errorf("it has until %s", d.At.Sub(p.now))
	}
}

// A child has one beginning and one end, and an event about another child does not fit.
func TestWhatDoesNotFitAChildIsRefused(t *testing.T) {
	finished := event.ChildFinished{CallID: "c1.1", Child: "k1"}
	for name, misfit := range map[string]func(p *play) event.Data{
		"a second child of a call": func(*play) event.Data { return event.ChildStarted{CallID: "c1.1", Child: "k3"} },
		"a park of another child":  func(*play) event.Data { return event.ChildParked{CallID: "c1.1", Child: "k2"} },
		"a wait of no child":       func(*play) event.Data { return event.ChildWaiting{CallID: "c1.1", Child: "k9", Waiting: true} },
		"a second end":             func(p *play) event.Data { p.apply(finished); return finished },
		"a park of one that ended": func(p *play) event.Data { p.apply(finished); return event.ChildParked{CallID: "c1.1", Child: "k1"} },
		"a use of what was not set aside": func(p *play) event.Data {
			p.apply(event.BudgetReserved{ID: "1", Run: "k1"})
			return event.BudgetCommitted{ID: "2", Run: "k1"}
		},
		"a refusal of a root's call": func(*play) event.Data { return event.BudgetRefused{ID: "1.1/1"} },
	} {
		p := newPlay(t, agent.Config{Dispatch: agent.ParallelAll})
		p.hires()
		if err := p.try(misfit(p)); !errors.Is(err, agent.ErrMisfit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := newPlay(t, agent.Config{})
	p.answer(asks("", "hire a"))
	if err := p.try(event.ChildStarted{CallID: "c1.1", Child: "k1"}); !errors.Is(err, agent.ErrMisfit) {
		t.Errorf("a child of a call that was not started: %v", err)
	}
}

// How often a run calls a model, and how large its requests are, bounds no run
// below it.
func TestARunBelowHasTurnsAndRequestsOfItsOwn(t *testing.T) {
	p := newPlay(t, agent.Config{Limits: budget.Limits{MaxModelTurns: 1, MaxRequestTokens: 100}})
	p.answer(asks("", "hire a"))
	if g := p.live.Admit(budget.Call{Input: 1000, Output: 10}, budget.Amount{}); g.Refusal.Setting != "" || g.Ask {
		t.Errorf("%+v", g)
	}
}

// What its siblings have set aside, they may give back.
func TestChildGetsItsReplyWhateverItsSiblingsDo(t *testing.T) {
	p := newPlay(t, agent.Config{
		MaxTokens: 4, Dispatch: agent.ParallelAll, Limits: budget.Limits{USDPerRun: 100},
		OnBudget: map[string]agent.OnBudget{"usd_per_run": agent.BudgetAsk},
	})
	p.hires() // and has spent 3 dollars
	p.command(event.BudgetReserved{ID: "1", Run: "k1", USD: 50})
	price := llm.Price{Input: 1e6, Output: 1e6}
	asked := budget.Call{Input: 96, Output: 2, Price: &price}
	g := p.live.Admit(asked, budget.Amount{})
	if !g.Ask || g.AtLeast != 101 {
		t.Errorf("%+v, want to be asked for 101 at least", g)
	}
	p.command(event.BudgetCommitted{ID: "1", Run: "k1"})
	p.command(event.BudgetRaised{Setting: "usd_per_run", Value: g.AtLeast})
	if g := p.live.Admit(asked, budget.Amount{}); g.Refusal.Setting != "" {
		t.Errorf("with that it has no room: %+v", g.Refusal)
	}
}

// A child took more than it was allowed, and its sibling what it was: together
// that is more than the limit, which is the overrun of both.
func TestChildsOverrunIsReportedWhenSiblingsShareIsUsed(t *testing.T) {
	p := newPlay(t, agent.Config{MaxTokens: 4, Dispatch: agent.ParallelAll, Limits: budget.Limits{USDPerRun: 103}})
	p.hires() // and has spent 3 dollars
	p.command(event.BudgetReserved{ID: "1", Run: "k1", USD: 40})
	p.command(event.BudgetReserved{ID: "1", Run: "k2", USD: 60})
	uses := func(child string, usd float64) {
		p.command(event.BudgetCommitted{ID: "1", Run: child, USD: usd, Usage: &llm.Usage{Input: 1}, Priced: true})
	}
	uses("k1", 50)
	if strings.Contains(p.log.String(), "budget.overrun") {
		t.Fatalf("53 of 103 is no overrun:\n%s", p.log.String())
	}
	uses("k2", 60)
	if !strings.Contains(p.log.String(), "budget.overrun") {
		t.Errorf("113 of 103 is an overrun:\n%s", p.log.String())
	}
}

// Where the run above has no room, a run ends or waits as that run's owner says,
// unless its own owner says what it ends by.
func TestARunEndsOrWaitsWhereTheRunAboveHasNoRoom(t *testing.T) {
	refused := func(cfg agent.Config, setting string, ask bool) *play {
		p := emptyPlay(t)
		p.parent = "above"
		p.starts(cfg)
		due, ok := p.live.Next()[0].(machine.Reserve)
		if !ok {
			t.Fatalf("%+v", p.live.Next())
		}
		p.command(event.BudgetRefused{ID: due.ID, Setting: setting, Detail: "3 dollars are left", Ask: ask})
		p.check()
		return p
	}
	own := agent.Config{Conditions: []stop.Condition{{Kind: stop.BudgetExhausted}}}
	if o := refused(agent.Config{}, "usd_per_run", false).outcome(); o.Reason != "budget:usd_per_run" || o.Kind != "parent" || o.OK {
		t.Errorf("%+v", o)
	}
	if o := refused(own, "usd_per_run", false).outcome(); o.Reason != event.ReasonConditionMet || !o.OK {
		t.Errorf("with a condition on the budget: %+v", o)
	}
	if o := refused(own, "max_input_tokens", false).outcome(); o.Reason != "budget:max_input_tokens" {
		t.Errorf("with a condition on another budget: %+v", o)
	}
	p := refused(agent.Config{}, "usd_per_run", true)
	if d := p.live.State().Parked; d == nil || d.Reason != event.ParkInput || d.ParentLimit != "usd_per_run" || d.Limit != "" {
		t.Errorf("where the owner is asked: %+v", d)
	}
	p.resume()
	if _, ok := p.live.Next()[0].(machine.Reserve); !ok {
		t.Errorf("after the raise it does not ask again: %+v", p.live.Next())
	}
}

// begins starts a run below another one, which sets aside what it asks for.
func (p *play) begins(cfg agent.Config) {
	p.t.Helper()
	p.parent = "above"
	p.starts(cfg)
	p.funds(1500)
}

// funds sets aside above what the run asks for, with that much for the answer.
func (p *play) funds(output int64) {
	p.t.Helper()
	due, ok := p.live.Next()[0].(machine.Reserve)
	if !ok {
		p.t.Fatalf("%+v", p.live.Next())
	}
	p.command(event.BudgetReserved{ID: due.ID, Input: due.Call.Input, Output: output, USD: 2000})
}

// A child may use its reservation in its parent, and no more: its model's output is
// bounded by it, and the parent gets the true usage.
func TestARunBelowKeepsToWhatIsSetAsideForItAndTellsWhatItUsed(t *testing.T) {
	p := emptyPlay(t)
	p.begins(agent.Config{})
	if got := p.call.Request.MaxTokens; got != 1500 {
		t.Errorf("%d tokens are asked for of 1500", got)
	}
	p.respond(used(40, 2, asks("", "read a")))
	settled, ok := p.live.Next()[0].(machine.Record).Data.(event.BudgetCommitted)
	if want := (llm.Usage{Input: 40, Output: 2}); !ok || settled.USD != 42 || !settled.Priced || settled.Usage == nil || *settled.Usage != want {
		t.Errorf("%+v", p.live.Next())
	}
}

// A sibling may wait for what a run holds that is paused before its call.
func TestARunBelowGivesBackWhatItHoldsBeforeItParks(t *testing.T) {
	p := emptyPlay(t)
	p.begins(agent.Config{})
	p.breaks(llm.ClassThrottled, retryAfter(30*time.Second))
	p.funds(1500)
	p.apply(event.PauseRequested{})
	if d, ok := p.live.Next()[0].(machine.Record).Data.(event.BudgetCommitted); !ok || d.Usage != nil {
		t.Errorf("%+v", p.live.Next())
	}
	p.advance()
	if d := p.live.State().Parked; d == nil || d.Reason != event.ParkPaused {
		t.Errorf("%+v", d)
	}
}

// What became of a reservation is looked for in the child's journal after a crash,
// as long as it is open.
func TestWhatAChildHasSetAsideIsOpenUntilItIsUsed(t *testing.T) {
	p := newPlay(t, agent.Config{Dispatch: agent.ParallelAll})
	p.hires()
	p.command(event.BudgetReserved{ID: "1", Run: "k1", Input: 5})
	p.command(event.BudgetReserved{ID: "1", Run: "k2", Input: 7})
	if open := p.live.Drawn("k1"); len(open) != 1 || open[0].Input != 5 {
		t.Errorf("k1 holds %+v", open)
	}
	p.command(event.BudgetCommitted{ID: "1", Run: "k1"})
	if open := p.live.Drawn("k1"); len(open) != 0 {
		t.Errorf("k1 holds %+v, which it has used", open)
	}
	if open := p.live.Drawn("k2"); len(open) != 1 || open[0].Input != 7 {
		t.Errorf("k2 holds %+v", open)
	}
}
