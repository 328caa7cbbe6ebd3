package agent_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

// branch is a fork of the run behind the first event of a kind, under other
// settings where some are given.
func (p *play) branch(kind event.Type, other ...agent.Config) *play {
	p.t.Helper()
	var d event.RunForked
	for _, cfg := range other {
		raw, err := json.Marshal(config(cfg))
		if err != nil {
			p.t.Fatal(err)
		}
		d.Config = raw
	}
	return p.fork(kind, d)
}

func (p *play) fork(kind event.Type, d event.RunForked) *play {
	p.t.Helper()
	b := emptyPlay(p.t)
	for _, body := range p.journal {
		e, err := event.Decode(body)
		if err != nil {
			p.t.Fatal(err)
		}
		b.apply(e.Data)
		if e.Type() == kind {
			d.From, d.Seq = "r", b.seq
			b.command(d)
			return b
		}
	}
	p.t.Fatalf("there is no %s:\n%s", kind, p.log.String())
	return nil
}

// Providers find what they have cached by the name of the first of the runs that
// continue one another.
func TestProvidersKnowARunThatContinuesOthersByTheFirstOfThem(t *testing.T) {
	for want, from := range map[string]*event.ContinuedFrom{"r": nil, "q": {Run: "q"}, "p": {Run: "q", Root: "p"}} {
		p := emptyPlay(t)
		started, err := agent.Start(config(agent.Config{}), llm.UserText("go on"))
		if err != nil {
			t.Fatal(err)
		}
		started.From = from
		p.apply(started)
		p.advance()
		if got := p.call.Request.CacheKey; got != want {
			t.Errorf("a run from %+v is known as %s", from, got)
		}
	}
}

// What the run before spent, went beyond or set aside is not the fork's, which
// has the whole budget before it.
func TestAForkHasAnAccountOfItsOwn(t *testing.T) {
	// A token costs one dollar.
	for name, input := range map[string]int64{"all but a dollar is spent": 296, "an overrun": 400} {
		p := newPlay(t, agent.Config{MaxTokens: 4, Limits: budget.Limits{USDPerRun: 300}})
		p.answer(used(input, 3, asks("", "read a")))
		if p.live.State().Outcome == nil {
			p.results("c1.1=A")
		}
		if o := p.outcome(); o.Limit != "usd_per_run" {
			t.Fatalf("%s: %+v", name, o)
		}
		b := p.branch(event.TypeToolResults)
		if b.call == nil {
			t.Fatalf("%s: the fork does not go on:\n%s", name, b.log.String())
		}
		b.answer(asks("", "read b"))
		b.results("c2.1=B")
		b.answer(says("done"))
		if o := b.outcome(); o.Reason != event.ReasonFinalAnswer || o.Cost.USD != 3+3 || o.Usage.Input != 4 {
			t.Errorf("%s: %s, cost %+v, usage %+v", name, o.Reason, o.Cost, o.Usage)
		}
		b.check()
	}
}

// A fork under other settings goes on by them alone: nothing of those before
// holds that they do not name.
func TestAForkUnderOtherSettingsGoesOnByThemAlone(t *testing.T) {
	t.Run("what the model is told, and who it is", func(t *testing.T) {
		p := newPlay(t, agent.Config{
			System: "be brief", MaxTokens: 4, Limits: budget.Limits{USDPerRun: 300},
			Targets: []agent.Target{{Model: "m/a"}, {Model: "m/b"}},
		})
		p.breaks(llm.ClassOverloaded)
		p.after(time.Second)
		p.answer(asks("", "read a"))
		p.results("c1.1=A")
		if p.call.Target != "m/b" {
			t.Fatalf("it did not fall back:\n%s", p.log.String())
		}
		b := p.branch(event.TypeToolResults, agent.Config{System: "take your time", Targets: []agent.Target{{Model: "m/c"}}})
		if r := b.call.Request; b.call.Target != "m/c" || r.System != "take your time" || r.MaxTokens != 0 {
			t.Errorf("%s is asked with %q for %d tokens at most", b.call.Target, r.System, r.MaxTokens)
		}
		b.concludes()
	})
	t.Run("which of two models, where both are there", func(t *testing.T) {
		two := []agent.Target{{Model: "m/a"}, {Model: "m/b"}}
		p := newPlay(t, agent.Config{Targets: two})
		p.breaks(llm.ClassOverloaded)
		p.after(time.Second)
		p.answer(asks("", "read a"))
		p.results("c1.1=A")
		if b := p.branch(event.TypeToolResults, agent.Config{Targets: two}); b.call.Target != "m/a" {
			t.Errorf("%s is asked under new settings", b.call.Target)
		}
		if b := p.branch(event.TypeToolResults); b.call.Target != "m/b" {
			t.Errorf("%s is asked under the same settings", b.call.Target)
		}
	})
	t.Run("what is asked about", func(t *testing.T) {
		p := newPlay(t, agent.Config{})
		p.answer(asks("", "read a"))
		p.results("c1.1=A")
		rules := gated("send")
		rules.Declared = true
		b := p.branch(event.TypeToolResults, agent.Config{Policy: rules})
		b.answer(asks("", "send b"))
		if got := b.question("c2.1").Policy; got != rules.Version() {
			t.Errorf("it is asked under %s, want %s", got, rules.Version())
		}
	})
	t.Run("who lets it begin", func(t *testing.T) {
		p := newPlay(t, hooked(gate(event.HookBeforeRun, "first"), gate(event.HookBeforeRun, "second")))
		b := p.branch(event.TypeRunStarted, hooked(gate(event.HookBeforeRun, "first"), gate(event.HookBeforeRun, "third")))
		b.heard("before_run/first/0", goesOn())
		b.heard("before_run/third/0", blocks("it is late"))
		if o := b.outcome(); o.Reason != event.ReasonPolicyDenied {
			t.Errorf("it ended with %+v", o)
		}
		b.check()
	})
	t.Run("who would let it begin, once it has begun unheard by them", func(t *testing.T) {
		p := newPlay(t, agent.Config{})
		b := p.branch(event.TypeRunStarted, hooked(gate(event.HookBeforeRun, "first")))
		b.apply(event.CycleStart{Cycle: 1}) // as forks did before they heard all gates
		clear(b.hooks)
		b.advance()
		b.answer(asks("", "read a"))
		b.results("c1.1=A")
		if len(b.hooks) > 0 {
			t.Errorf("it is asked in cycle %d who lets it begin", b.cycle)
		}
	})
	t.Run("what an answer without calls means", func(t *testing.T) {
		p := newPlay(t, agent.Config{OnNoToolCall: agent.NoToolCallNudge, MaxNudges: 1, NudgeText: "go on"})
		p.answer(says("done"))
		b := p.branch(event.TypeNudge, agent.Config{OnNoToolCall: agent.NoToolCallFinish, MaxNudges: 1})
		b.concludes()
	})
}

// Requests to the run before, and what it waited for, do not pass to the fork.
func TestAForkWaitsForNothingThatTheRunBeforeWaitedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  agent.Config
		play func(p *play)
		at   event.Type
	}{
		"a pause": {play: func(p *play) {
			p.apply(event.PauseRequested{})
			p.results("c1.1=A")
		}, at: event.TypeToolResults},
		"a park": {play: func(p *play) {
			p.apply(event.PauseRequested{})
			p.results("c1.1=A")
		}, at: event.TypeRunParked},
		"a cancel": {play: func(p *play) {
			p.apply(event.CancelRequested{Reason: "enough"})
			p.results("c1.1=A")
		}, at: event.TypeToolResults},
		"a limit that refused a call": {cfg: agent.Config{Limits: budget.Limits{MaxToolCalls: 1}}, play: func(p *play) {
			p.results("c1.1=A")
		}, at: event.TypeToolResults},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, tt.cfg)
			p.answer(asks("", "read a", "read b"))
			if tt.cfg.Limits.MaxToolCalls == 0 {
				p.results("c1.2=B")
			}
			tt.play(p)
			b := p.branch(tt.at)
			if s := b.live.State(); b.call == nil || s.Phase != machine.Running {
				t.Fatalf("the fork does not go on:\n%s", b.log.String())
			}
			b.concludes()
		})
	}
}

// What a provider counted of the request before says nothing about one with
// another system text: neither what it may cost nor whether it fits.
func TestAForkWithALongerSystemTextIsMeasuredAnew(t *testing.T) {
	cfg := windowed(compact.Settings{Strategy: compact.RollingWindow})
	cfg.System = "be brief"
	p := newPlay(t, cfg)
	p.answer(asks("", "read a"))
	p.results("c1.1=A")
	other := cfg
	other.System = strings.Repeat("be careful ", 200)
	b := p.branch(event.TypeToolResults, other)
	all := reservations(t, b)
	if r := all[len(all)-1]; r.Input < int64(len(other.System)) {
		t.Errorf("%d tokens are set aside for a system text of %d bytes", r.Input, len(other.System))
	}
	b.concludes()

	other.System = strings.Repeat("be careful ", 2000)
	b = p.branch(event.TypeToolResults, other)
	if o := b.outcome(); o.Error == nil || o.Error.Class != string(llm.ClassContextOverflow) {
		t.Errorf("%+v\n%s", o, b.log.String())
	}
}

// A result that is longer than the one that it replaces is in no count of the
// provider's; where nothing is replaced, the count still holds.
func TestAForkWithAnotherResultIsMeasuredAnew(t *testing.T) {
	p := newPlay(t, agent.Config{MaxTokens: 10})
	p.answer(used(10, 5, asks(strings.Repeat("many words ", 500), "read a")))
	p.results("c1.1=A")
	newest := func(p *play) int64 {
		all := reservations(t, p)
		return all[len(all)-1].Input
	}
	if same := p.branch(event.TypeToolResults); newest(same) != newest(p) || newest(p) > 1000 {
		t.Errorf("%d tokens are set aside by a fork, %d by the run", newest(same), newest(p))
	}
	long := strings.Repeat("a", 5000)
	other := p.fork(event.TypeToolResults, event.RunForked{Results: []event.ForkedResult{{CallID: "c1.1", Output: long}}})
	if newest(other) < 5500+5000 {
		t.Errorf("%d tokens are set aside for a result of %d bytes behind words of 5500", newest(other), len(long))
	}
	other.concludes()
}

// A cycle whose result is another one is judged by that.
func TestAForksConditionIsAboutItsOwnResult(t *testing.T) {
	cond := stop.Condition{Kind: stop.ToolResult, Tool: "read", Match: stop.Match{Contains: "passed"}}
	p := newPlay(t, agent.Config{Conditions: []stop.Condition{cond}})
	p.answer(asks("", "read a"))
	p.results("c1.1=2 failed")
	b := p.fork(event.TypeToolResults, event.RunForked{Results: []event.ForkedResult{{CallID: "c1.1", Output: "all passed"}}})
	if o := b.outcome(); o.Reason != event.ReasonConditionMet || o.Cycles != 1 {
		t.Errorf("%+v", o)
	}
	b.check()
}

// The time of a fork is its own from its beginning, wherever it begins.
func TestAForkOfARunThatWasParkedHasItsTimeCounted(t *testing.T) {
	p := newPlay(t, agent.Config{Limits: budget.Limits{MaxWallSeconds: 10}})
	p.answer(asks("", "read a"))
	p.apply(event.PauseRequested{})
	p.results("c1.1=A")
	b := p.branch(event.TypeRunParked)
	b.now = b.now.Add(10 * time.Second)
	b.answer(asks("", "read b"))
	if o := b.outcome(); o.Limit != "max_wall_time_seconds" {
		t.Errorf("%+v", o)
	}
}
