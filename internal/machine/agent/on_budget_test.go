package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

// turned plays a run with two answers allowed up to where that limit holds.
func turned(t *testing.T, action agent.OnBudget) *play {
	t.Helper()
	p := newPlay(t, agent.Config{
		Limits: budget.Limits{MaxModelTurns: 2}, OnBudget: map[string]agent.OnBudget{"max_model_turns": action},
	})
	p.answer(asks("", "read a"))
	p.results("c1.1=A")
	p.answer(asks("", "read b"))
	p.results("c2.1=B")
	return p
}

func TestReachingALimitMeansWhatItsOwnerSays(t *testing.T) {
	for action, ok := range map[agent.OnBudget]bool{"": false, agent.BudgetStop: false, agent.BudgetOK: true} {
		o := turned(t, action).outcome()
		if o.Status != event.StatusStopped || o.OK != ok || o.Completed || o.Limit != "max_model_turns" || o.NextSafeAction == "" {
			t.Errorf("%q: %+v", action, o)
		}
	}
}

// parkedAt fails unless the run has parked to have a limit raised, with nothing
// under way.
func (p *play) parkedAt(setting string) {
	p.t.Helper()
	s := p.live.State()
	if s.Phase != machine.Parked || s.Parked.Reason != event.ParkInput || s.Parked.Limit != setting || p.call != nil || len(p.runs) > 0 {
		p.t.Fatalf("it did not park at %s: %+v\n%s", setting, s.Parked, p.log.String())
	}
}

func (p *play) raise(setting string, value float64) {
	p.t.Helper()
	p.command(event.BudgetRaised{Setting: setting, Value: value})
}

// The owner is asked as often as the run is resumed without an answer; with one
// it goes on where it stood.
func TestARunThatAsksAtItsLimitGoesOnWhenTheLimitIsRaised(t *testing.T) {
	p := turned(t, agent.BudgetAsk)
	p.parkedAt("max_model_turns")
	p.resume()
	p.parkedAt("max_model_turns")
	p.raise("max_model_turns", 3)
	p.resume()
	p.answer(says("done"))
	if o := p.outcome(); o.Reason != event.ReasonFinalAnswer || o.Cycles != 3 {
		t.Errorf("%+v", o)
	}
	p.check()
}

// What there is no room for is not used up.
func TestARunThatAsksSaysWhatItHasNoRoomFor(t *testing.T) {
	for usd, want := range map[float64]string{
		56: "usd_per_run leaves no room: the next call could cost USD 57.0000, and USD 56.0000 are left; raise it to at least 57 or cancel the run",
		57: "usd_per_run is used up; raise it to at least 227 or cancel the run",
	} {
		p := newPlay(t, agent.Config{
			MaxTokens: 4, Limits: budget.Limits{USDPerRun: usd}, OnBudget: map[string]agent.OnBudget{"usd_per_run": agent.BudgetAsk},
		})
		if p.call != nil {
			p.answer(used(54, 3, asks("", "read a")))
			p.results("c1.1=A")
		}
		p.parkedAt("usd_per_run")
		if got := p.live.State().Parked.Detail; got != want {
			t.Errorf("USD %v: %q, want %q", usd, got, want)
		}
	}
}

// What a run says that it needs is what it needs: it goes on with that, and with
// nothing below.
func TestARunThatAsksGoesOnWithTheLeastThatItSays(t *testing.T) {
	for _, tt := range []struct {
		setting string
		limits  budget.Limits
		step    float64
	}{
		{"max_model_turns", budget.Limits{MaxModelTurns: 1}, 1},
		{"max_tool_calls", budget.Limits{MaxToolCalls: 1}, 1},
		{"usd_per_run", budget.Limits{USDPerRun: 57}, 1e-6},
		{"usd_per_run", budget.Limits{USDPerRun: 120.5}, 1e-6},
		{"max_total_cost", budget.Limits{MaxTotalCost: 57}, 1e-6},
		{"max_input_tokens", budget.Limits{MaxInputTokens: 60}, 1},
		{"max_output_tokens", budget.Limits{MaxOutputTokens: 4}, 1},
		{"max_context_tokens_per_request", budget.Limits{MaxRequestTokens: 20}, 1},
		{"max_wall_time_seconds", budget.Limits{MaxWallSeconds: 5}, 1e-3},
	} {
		t.Run(fmt.Sprintf("%s %+v", tt.setting, tt.limits), func(t *testing.T) {
			at := func() *play {
				p := newPlay(t, agent.Config{MaxTokens: 4, Limits: tt.limits, OnBudget: map[string]agent.OnBudget{tt.setting: agent.BudgetAsk}})
				if p.call != nil {
					p.answer(used(54, 3, asks("", "read a", "send b")))
				}
				if len(p.runs) > 0 {
					p.now = p.now.Add(7 * time.Second)
					p.results("c1.1=A")
				}
				if len(p.runs) > 0 {
					p.results("c1.2=B")
				}
				p.parkedAt(tt.setting)
				return p
			}
			p := at()
			least := p.live.State().Parked.AtLeast
			if least == 0 {
				t.Fatal("it does not say what it needs")
			}
			p.raise(tt.setting, least-tt.step)
			p.resume()
			p.parkedAt(tt.setting)
			p = at()
			p.raise(tt.setting, least)
			p.resume()
			if s := p.live.State(); s.Phase == machine.Parked {
				t.Errorf("with %v it parks again: %+v", least, s.Parked)
			}
		})
	}
}

func TestARunThatAsksAtItsLimitCanBeCancelled(t *testing.T) {
	p := turned(t, agent.BudgetAsk)
	p.cancel()
	if o := p.outcome(); o.Reason != event.ReasonCancelled {
		t.Errorf("%+v", o)
	}
}

// A call that the limit has no room for is no failure of the model's: it waits
// for the raise, and runs once.
func TestCallsWaitForTheRaiseOfALimitThatAsks(t *testing.T) {
	asking := func(setting string, l budget.Limits) agent.Config {
		return agent.Config{Limits: l, MaxTokens: 4, OnBudget: map[string]agent.OnBudget{setting: agent.BudgetAsk}}
	}
	with := func(c agent.Config, r policy.Rules) agent.Config { c.Policy = r; return c }
	three := asks("", "read a", "send b", "read c")
	for _, tt := range []struct {
		name string
		cfg  agent.Config
		play func(p *play)
	}{
		{"one call more at a time", asking("max_tool_calls", budget.Limits{MaxToolCalls: 1}), func(p *play) {
			p.answer(three)
			p.results("c1.1=A")
			p.parkedAt("max_tool_calls")
			p.raise("max_tool_calls", 2)
			p.resume()
			p.results("c1.2=B")
			p.parkedAt("max_tool_calls")
			p.raise("max_tool_calls", 9)
			p.resume()
			p.results("c1.3=C")
		}},
		{"resumed without a raise", asking("max_tool_calls", budget.Limits{MaxToolCalls: 1}), func(p *play) {
			p.answer(three)
			p.results("c1.1=A")
			p.resume()
			p.parkedAt("max_tool_calls")
			p.raise("max_tool_calls", 3)
			p.resume()
			p.results("c1.2=B", "c1.3=C")
		}},
		{"raised before the calls beside them have settled", asking("max_tool_calls", budget.Limits{MaxToolCalls: 1}), func(p *play) {
			p.answer(three)
			p.raise("max_tool_calls", 3)
			p.results("c1.1=A", "c1.2=B", "c1.3=C")
		}},
		{"a process that dies before and after the raise", asking("max_tool_calls", budget.Limits{MaxToolCalls: 1}), func(p *play) {
			p.answer(three)
			p.crash()
			p.resume()
			p.results("c1.1=A")
			p.parkedAt("max_tool_calls")
			p.raise("max_tool_calls", 3)
			p.resume()
			p.results("c1.2=B")
			p.crash()
			p.resume()
			p.results("c1.3=C")
		}},
		{"wall time", asking("max_wall_time_seconds", budget.Limits{MaxWallSeconds: 10}), func(p *play) {
			p.answer(three)
			p.now = p.now.Add(10 * time.Second)
			p.results("c1.1=A")
			p.parkedAt("max_wall_time_seconds")
			p.now = p.now.Add(time.Hour)
			p.resume()
			p.parkedAt("max_wall_time_seconds")
			p.raise("max_wall_time_seconds", 20)
			p.resume()
			p.results("c1.2=B", "c1.3=C")
		}},
		{"wall time, and a read whose process died", asking("max_wall_time_seconds", budget.Limits{MaxWallSeconds: 10}), func(p *play) {
			p.answer(three)
			p.after(10 * time.Second)
			p.command(event.InputReceived{Text: "hurry"})
			p.crash()
			p.resume()
			p.parkedAt("max_wall_time_seconds")
			p.raise("max_wall_time_seconds", 20)
			p.resume()
			p.results("c1.1=A", "c1.2=B", "c1.3=C")
		}},
		{"a provider that took more than it was allowed", asking("usd_per_run", budget.Limits{USDPerRun: 57}), func(p *play) {
			p.answer(used(70, 3, three))
			p.parkedAt("usd_per_run")
			p.raise("usd_per_run", 72)
			p.resume()
			p.parkedAt("usd_per_run")
			p.raise("usd_per_run", 1000)
			p.resume()
			p.results("c1.1=A", "c1.2=B", "c1.3=C")
		}},
		{"and that took more of two limits", agent.Config{
			Limits: budget.Limits{USDPerRun: 57, MaxInputTokens: 60}, MaxTokens: 4,
			OnBudget: map[string]agent.OnBudget{"usd_per_run": agent.BudgetAsk, "max_input_tokens": agent.BudgetAsk},
		}, func(p *play) {
			p.answer(used(70, 3, three))
			p.parkedAt("usd_per_run")
			p.raise("usd_per_run", 1000)
			p.resume()
			p.parkedAt("max_input_tokens")
			p.raise("max_input_tokens", 1000)
			p.resume()
			p.results("c1.1=A", "c1.2=B", "c1.3=C")
		}},
		{"people are asked about the calls that there is room for first", with(asking("max_tool_calls", budget.Limits{MaxToolCalls: 2}), gated("send")), func(p *play) {
			p.answer(three)
			p.results("c1.1=A")
			if len(p.asked) != 1 {
				p.t.Fatalf("nobody was asked about c1.2:\n%s", p.log.String())
			}
			p.decide("c1.2", event.ApprovalApproved, "")
			p.results("c1.2=B")
			p.parkedAt("max_tool_calls")
			p.raise("max_tool_calls", 3)
			p.resume()
			p.results("c1.3=C")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlay(t, tt.cfg)
			tt.play(p)
			if p.call == nil {
				t.Fatalf("the model is not called:\n%s", p.log.String())
			}
			m := p.call.Request.Messages
			results := m[len(m)-1]
			if m[len(m)-1].Text() == "hurry" {
				results = m[len(m)-2]
			}
			if got := resultsOf(results); got != "A B C" {
				t.Errorf("the model sees %q\n%s", got, p.log.String())
			}
			if n := strings.Count(p.log.String(), `tool.started {"attempt":1,"callId":"c1.2"}`); n != 1 {
				t.Errorf("c1.2 ran %d times:\n%s", n, p.log.String())
			}
			p.check()
		})
	}
}

// A process dies during the one call of an answer, and the next one finds the
// time used up: the call waits for the raise like one that has not begun.
func TestALostReadWaitsForTheRaiseOfTheTime(t *testing.T) {
	p := newPlay(t, agent.Config{
		Limits: budget.Limits{MaxWallSeconds: 10}, OnBudget: map[string]agent.OnBudget{"max_wall_time_seconds": agent.BudgetAsk},
	})
	p.answer(asks("", "read a"))
	p.now = p.now.Add(10 * time.Second)
	p.command(event.InputReceived{Text: "hurry"})
	p.crash()
	p.resume()
	p.parkedAt("max_wall_time_seconds")
	p.raise("max_wall_time_seconds", 20)
	p.resume()
	p.results("c1.1=A")
	p.answer(says("done"))
	p.check()
}

// The calls beside the one that is held come to their ends first.
func TestARunParksForARaiseWhenNothingIsUnderWay(t *testing.T) {
	p := newPlay(t, agent.Config{
		Limits: budget.Limits{MaxToolCalls: 2}, OnBudget: map[string]agent.OnBudget{"max_tool_calls": agent.BudgetAsk},
	})
	p.answer(asks("", "read a", "read b", "read c"))
	p.results("c1.2=B")
	if s := p.live.State(); s.Phase != machine.Running {
		t.Fatalf("parked while c1.1 runs:\n%s", p.log.String())
	}
	p.results("c1.1=A")
	p.parkedAt("max_tool_calls")
}

func TestACallThatPolicyDeniesWaitsForNoRaise(t *testing.T) {
	denying := policy.Rules{Declared: true, Rules: []policy.Rule{{Decision: event.DecisionDeny, Tool: "send", Reason: "no mail"}}}
	p := newPlay(t, agent.Config{
		Limits: budget.Limits{MaxToolCalls: 1}, OnBudget: map[string]agent.OnBudget{"max_tool_calls": agent.BudgetAsk}, Policy: denying,
	})
	p.answer(asks("", "read a", "send b"))
	p.results("c1.1=A")
	if p.call == nil {
		t.Errorf("the run does not go on:\n%s", p.log.String())
	}
}

// Time that is used up between the decision and its result changes nothing about
// why the call did not run.
func TestDeniedCallGetsItsReasonHoweverLate(t *testing.T) {
	denying := policy.Rules{Rules: []policy.Rule{{Decision: event.DecisionDeny, Tool: "send", Reason: "no mail"}}}
	for _, action := range []agent.OnBudget{agent.BudgetStop, agent.BudgetAsk} {
		p := newPlay(t, agent.Config{
			Limits: budget.Limits{MaxWallSeconds: 10}, OnBudget: map[string]agent.OnBudget{"max_wall_time_seconds": action}, Policy: denying,
		})
		p.respond(asks("", "send a"))
		p.step() // commits what the answer cost
		p.step() // resolves the call
		p.apply(p.live.Next()[0].(machine.Record).Data)
		p.now = p.now.Add(10 * time.Second)
		p.command(event.InputReceived{Text: "hurry"})
		if n := strings.Count(p.log.String(), "not permitted: no mail"); n != 1 {
			t.Errorf("%s: the call is told %d times that it is denied\n%s", action, n, p.log.String())
		}
		p.check()
	}
}

// A limit that is lowered below what a call went beyond its reservation with
// stops the run like the call itself: what was lost is not made again either.
func TestACallWhoseProcessDiedIsNotRepeatedOnceALimitIsOverrun(t *testing.T) {
	// A token costs one dollar, and "do it" is at most 53 tokens.
	p := newPlay(t, agent.Config{MaxTokens: 4, Limits: budget.Limits{USDPerRun: 1000}})
	p.answer(used(70, 3, asks("", "read a")))
	p.raise("usd_per_run", 60)
	p.crash()
	p.resume()
	if len(p.runs) > 0 {
		t.Fatalf("the call is made again:\n%s", p.log.String())
	}
	if o := p.outcome(); o.Limit != "usd_per_run" {
		t.Errorf("%+v", o)
	}
	p.check()
}

// Tools cost nothing of a budget of money, and the answer that asks for them is
// paid for: only a call that took more than it was allowed stops them.
func TestMoneyLimitBelowSpendLetsCallsOfTheAnswerRun(t *testing.T) {
	// A token costs one dollar, and "do it" is at most 53 tokens.
	cfg := agent.Config{MaxTokens: 4, Limits: budget.Limits{USDPerRun: 1000}}
	for name, lowered := range map[string]func(p *play){
		"while the calls run": func(p *play) {
			p.answer(used(2, 3, asks("", "read a", "send b")))
			p.raise("usd_per_run", 4)
		},
		"behind a call that took more than it was allowed": func(p *play) {
			p.answer(used(70, 3, asks("", "read x")))
			p.results("c1.1=X")
			p.raise("usd_per_run", 60)
			p.answer(used(2, 3, asks("", "read a", "send b")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, cfg)
			lowered(p)
			p.results(fmt.Sprintf("c%d.1=A", p.cycle), fmt.Sprintf("c%d.2=B", p.cycle))
			if o := p.outcome(); o.Limit != "usd_per_run" || strings.Contains(p.log.String(), "budget.overrun") {
				t.Errorf("%+v\n%s", o, p.log.String())
			}
			p.check()
		})
	}
}

// A call was refused for one limit: to raise another one gives it no room, nor
// does a value that the limit cannot have.
func TestARaiseThatGivesNoRoomLetsARunThatHadNoneEnd(t *testing.T) {
	for setting, value := range map[string]float64{"max_input_tokens": 1e6, "max_tool_calls": 2.5} {
		p := newPlay(t, agent.Config{Limits: budget.Limits{MaxToolCalls: 1}})
		p.answer(asks("", "read a", "read b"))
		p.raise(setting, value)
		p.results("c1.1=A")
		if o := p.outcome(); o.Limit != "max_tool_calls" {
			t.Errorf("%s %v: %+v", setting, value, o)
		}
		p.check()
	}
}

// What the owner says of a limit holds for the runs below as well, also where a
// call went beyond it.
func TestChildIsHeldIfParentOverranLimitThatAsks(t *testing.T) {
	for action, ask := range map[agent.OnBudget]bool{agent.BudgetAsk: true, agent.BudgetStop: false} {
		p := newPlay(t, agent.Config{
			MaxTokens: 4, Limits: budget.Limits{USDPerRun: 57}, OnBudget: map[string]agent.OnBudget{"usd_per_run": action},
		})
		p.respond(used(70, 3, asks("", "read a")))
		p.step() // commits what the answer cost, and says that it was too much
		if g := p.live.Admit(budget.Call{Input: 1, Output: 1}, budget.Amount{}); g.Refusal.Setting != "usd_per_run" || g.Ask != ask {
			t.Errorf("%s: %+v\n%s", action, g, p.log.String())
		}
	}
}

func TestCallsThatWaitForARaiseAreSettledByACancel(t *testing.T) {
	p := newPlay(t, agent.Config{
		Limits: budget.Limits{MaxToolCalls: 1}, OnBudget: map[string]agent.OnBudget{"max_tool_calls": agent.BudgetAsk},
	})
	p.answer(asks("", "read a", "send b"))
	p.results("c1.1=A")
	p.parkedAt("max_tool_calls")
	p.cancel()
	if o := p.outcome(); o.Reason != event.ReasonCancelled {
		t.Errorf("%+v", o)
	}
	p.check()
}

// A condition on the budget is what the run was to end by.
func TestAConditionOnTheBudgetComesBeforeAskingAboutMoney(t *testing.T) {
	p := newPlay(t, agent.Config{
		MaxTokens: 4, Limits: budget.Limits{USDPerRun: 57, MaxModelTurns: 9}, Conditions: []stop.Condition{{Kind: stop.BudgetExhausted}},
		OnBudget: map[string]agent.OnBudget{"usd_per_run": agent.BudgetAsk, "max_model_turns": agent.BudgetAsk},
	})
	p.answer(used(70, 3, asks("", "read a")))
	if o := p.outcome(); o.Reason != event.ReasonConditionMet || o.Kind != string(stop.BudgetExhausted) || !o.OK {
		t.Errorf("%+v", o)
	}
	p.check()
}

// resultsOf lists the outputs of a message of results.
func resultsOf(m *llm.Message) string {
	var outputs []string
	for _, p := range m.Parts {
		if r, ok := p.(llm.ToolResult); ok {
			outputs = append(outputs, r.Output)
		}
	}
	return strings.Join(outputs, " ")
}

// What a call costs that has no price, no cap can count.
func TestACapInMoneyNeedsThePriceOfEveryModel(t *testing.T) {
	priced, free := agent.Target{Model: "a/priced", Price: &llm.Price{Input: 1, Output: 1}}, agent.Target{Model: "a/unknown"}
	for _, tt := range []struct {
		name    string
		targets []agent.Target
		setting string
		value   float64
		refused bool
	}{
		{"priced", []agent.Target{priced}, "usd_per_run", 5, false},
		{"not priced", []agent.Target{free}, "usd_per_run", 5, true},
		{"not priced, by the other name", []agent.Target{free}, "max_total_cost", 5, true},
		{"a fallback that is not", []agent.Target{priced, free}, "usd_per_run", 5, true},
		{"the cap is taken away", []agent.Target{free}, "usd_per_run", budget.None, false},
		{"another limit", []agent.Target{free}, "max_cycles", 5, false},
	} {
		p := newPlay(t, agent.Config{Targets: tt.targets})
		err := p.live.CanKeep(tt.setting, tt.value)
		if _, unpriced := errors.AsType[*budget.UnpricedError](err); unpriced != tt.refused {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// A chain of which some models are priced may park at its cap, and goes on with
// a higher one.
func TestTheCapThatARunParkedForMayBeRaised(t *testing.T) {
	p := newPlay(t, agent.Config{
		Targets: []agent.Target{{Model: "a/priced", Price: &llm.Price{Input: 1e6, Output: 1e6}}, {Model: "a/unknown"}},
		Limits:  budget.Limits{USDPerRun: 1}, OnBudget: map[string]agent.OnBudget{"usd_per_run": agent.BudgetAsk},
	})
	p.parkedAt("usd_per_run")
	if err := p.live.CanKeep("usd_per_run", 1e9); err != nil {
		t.Error(err)
	}
}

// Who says what a run may cost means it, whichever of the two settings they name.
func TestExplicitCapReplacesDefault(t *testing.T) {
	for _, c := range []struct {
		setting    string
		value, cap float64
		byDefault  bool
	}{
		{"max_total_cost", 9, 9, false},
		{"max_total_cost", 3, 3, false},
		{"max_total_cost", budget.None, 5, true},
		{"usd_per_run", 5, 5, false},
		{"usd_per_run", budget.None, 0, false},
		{"max_tool_calls", 7, 5, true},
	} {
		cfg := agent.Config{}.WithDefaultCap()
		if err := cfg.SetLimit(c.setting, c.value); err != nil {
			t.Fatal(err)
		}
		if got, _ := cfg.Limits.CostCap(); got != c.cap || cfg.DefaultCap != c.byDefault {
			t.Errorf("%s of %v: the cap is %v, by default: %t", c.setting, c.value, got, cfg.DefaultCap)
		}
	}
	cfg := agent.Config{Limits: budget.Limits{MaxTotalCost: 9}}.WithDefaultCap()
	if got, _ := cfg.Limits.CostCap(); got != 9 || cfg.DefaultCap {
		t.Errorf("of a run with a cap it is %v, by default: %t", got, cfg.DefaultCap)
	}
}
