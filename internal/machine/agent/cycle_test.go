package agent_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

func cycles(n int) budget.Limits { return budget.Limits{MaxCycles: n} }

// rows: ALDO-1, ALDO-13..17, ALDO-29..31, ALDO-37..50, ALF-8, ALF-13..15, HAR-20, HAR-26, HAR-27, HAR-30
func TestCycle(t *testing.T) {
	nudging := agent.Config{OnNoToolCall: agent.NoToolCallNudge, OnLimit: agent.OnLimitOK, Limits: cycles(3)}
	done := stop.Condition{Kind: stop.TextIncludes, Text: "<task-complete>"}
	green := stop.Condition{Kind: stop.ToolResult, Tool: "shell", Match: stop.Match{ExitCode: new(0), Contains: "tsc"}}
	golden(t, "cycle", []scenario{
		{"the events of a cycle come in the declared order", agent.Config{}, func(p *play) {
			p.answer(asks("looking", "read a", "read b"))
			p.results("c1.2=B", "c1.1=A")
			p.answer(says("done"))
		}},
		{"the ceiling is reached with calls still wanted", agent.Config{Limits: cycles(2), OnLimit: agent.OnLimitOK}, func(p *play) {
			p.answer(asks("", "read a"))
			p.results("c1.1=A")
			p.answer(asks("", "read b"))
			p.results("c2.1=B")
		}},
		{"the ceiling is ok where the owner says so, also after a call that failed", agent.Config{Limits: cycles(1), OnLimit: agent.OnLimitOK}, func(p *play) {
			p.answer(asks("", "shell tsc"))
			p.result("c1.1", event.ToolResult{Output: "exit code: 2", ExitCode: new(2), IsError: true, ErrorType: event.ErrorTool})
		}},
		{"the ceiling is the run's, whoever drives it", agent.Config{Limits: cycles(2), OnLimit: agent.OnLimitOK}, func(p *play) {
			p.answer(asks("", "read a"))
			p.crash()
			p.resume()
			p.results("c1.1=A")
			p.crash()
			p.resume()
			p.answer(asks("", "read b"))
			p.results("c2.1=B")
		}},
		{"the ceiling is a stop by default", agent.Config{Limits: cycles(1)}, func(p *play) {
			p.answer(asks("", "read a"))
			p.results("c1.1=A")
		}},
		{"the ceiling is a failure where the owner says so", agent.Config{Limits: cycles(1), OnLimit: agent.OnLimitFail}, func(p *play) {
			p.answer(asks("", "read a"))
			p.results("c1.1=A")
		}},
		{"there is no ceiling where the owner wants none", agent.Config{Limits: cycles(budget.None)}, func(p *play) {
			p.answer(says("done"))
		}},
		{"a condition met in the last allowed cycle wins over the ceiling", agent.Config{
			Limits: cycles(1), Conditions: []stop.Condition{green, done},
		}, func(p *play) {
			p.answer(asks("<task-complete>", "shell tsc"))
			p.result("c1.1", event.ToolResult{Output: "tsc ok", ExitCode: new(0)})
		}},
		{"the first condition of the list is the one reported", agent.Config{Conditions: []stop.Condition{done, green}}, func(p *play) {
			p.answer(asks("<task-complete>", "shell tsc"))
			p.result("c1.1", event.ToolResult{Output: "tsc ok", ExitCode: new(0)})
		}},
		{"a condition that is met ends the run although a message waits to be read", agent.Config{Conditions: []stop.Condition{green}}, func(p *play) {
			p.answer(asks("", "shell tsc"))
			p.command(event.InputReceived{Text: "one more thing"})
			p.result("c1.1", event.ToolResult{Output: "tsc ok", ExitCode: new(0)})
		}},
		{"a text that is looked for is the answer's, not the task's, a thought's, an argument's or a tool's", agent.Config{
			Conditions: []stop.Condition{{Kind: stop.TextIncludes, Text: "do it"}},
		}, func(p *play) {
			r := asks("looking", "read do it")
			r.Parts = append(llm.Parts{llm.Reasoning{Text: "I do it"}}, r.Parts...)
			p.answer(r)
			p.results("c1.1=do it")
			p.answer(asks("I do it", "read b"))
			p.results("c2.1=B")
		}},
		{"a cycle without a call is nudged after its conditions were checked", agent.Config{
			OnNoToolCall: agent.NoToolCallNudge, Conditions: []stop.Condition{done},
		}, func(p *play) {
			p.answer(says("thinking aloud"))
			sent := p.call.Request.Messages
			if last := sent[len(sent)-1]; last.Role != llm.RoleUser || last.Text() != agent.DefaultNudge {
				p.t.Errorf("the newest message is %+v", last)
			}
			p.answer(asks("", "read a"))
			p.results("c2.1=A")
			p.answer(says("all <task-complete>"))
		}},
		{"nobody is nudged when no cycle is left to answer", nudging, func(p *play) {
			p.answer(says("one"))
			p.answer(says("two"))
			p.answer(says("three"))
		}},
		{"nudges are bounded where the owner bounds them, and calls reset the count", agent.Config{
			OnNoToolCall: agent.NoToolCallNudge, MaxNudges: 1,
		}, func(p *play) {
			p.answer(says("one"))
			p.answer(asks("", "read a"))
			p.results("c2.1=A")
			p.answer(says("two"))
			p.answer(says("three"))
		}},
		{"a harness stops on an answer without a call", agent.Config{OnNoToolCall: agent.NoToolCallStop}, func(p *play) {
			p.answer(says("well"))
		}},
		{"a tool may end the run with its output", agent.Config{}, func(p *play) {
			p.answer(asks("handing in", "done x", "send y"))
			p.result("c1.1", event.ToolResult{Output: "the result", EndsRun: true})
			p.results("c1.2=sent")
		}},
		{"a failed call of a tool that may end the run does not", agent.Config{Limits: cycles(1)}, func(p *play) {
			p.answer(asks("", "done x"))
			p.result("c1.1", event.ToolResult{Output: "no", EndsRun: true, IsError: true, ErrorType: event.ErrorTool})
		}},
	})
}

// rows: ALDO-40
func TestEveryCallOfACycleCarriesTheToolsAlsoTheLastOne(t *testing.T) {
	tools := []llm.ToolDef{{Name: "read", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "shell", Schema: json.RawMessage(`{}`)}}
	p := newPlay(t, agent.Config{Limits: cycles(3), OnNoToolCall: agent.NoToolCallNudge, Tools: tools})
	for cycle := 1; cycle <= 3; cycle++ {
		if diff := cmp.Diff(tools, p.call.Request.Tools); diff != "" {
			t.Errorf("cycle %d (-declared +sent):\n%s", cycle, diff)
		}
		p.answer(says("thinking aloud"))
	}
	if o := p.outcome(); o.Reason != event.ReasonMaxCycles {
		t.Errorf("the third cycle was not the last: %+v", o)
	}
}

func TestARunWithoutATaskParksUntilItHasOne(t *testing.T) {
	p := emptyPlay(t)
	started, err := agent.Start(config(agent.Config{}), llm.UserText("  "))
	if err != nil {
		t.Fatal(err)
	}
	p.apply(started)
	p.advance()
	if s := p.live.State(); s.Parked == nil || s.Parked.Reason != event.ParkInput {
		t.Fatalf("state %+v", s)
	}
	p.resume()
	if s := p.live.State(); s.Parked == nil {
		t.Fatalf("resumed without a task, it must park again: %+v", s)
	}
	p.command(event.InputReceived{Text: " \n"})
	p.resume()
	if s := p.live.State(); s.Parked == nil {
		t.Fatalf("a blank message is no task: %+v", s)
	}
	p.command(event.InputReceived{Text: "say hi"})
	p.resume()
	if p.call == nil || p.call.Request.Messages[0].Text() != "say hi" {
		t.Fatalf("call %+v", p.call)
	}
}

// rows: HAR-11, HAR-22, HAR-51, ALDO-10, ALDO-36
func TestBudgets(t *testing.T) {
	limit := func(l budget.Limits) agent.Config { return agent.Config{Limits: l} }
	// A token costs one dollar, and "do it" is at most 53 tokens.
	const worst = 53 + 4
	money := func(usd float64) agent.Config {
		return agent.Config{MaxTokens: 4, Limits: budget.Limits{USDPerRun: usd}}
	}
	golden(t, "budget", []scenario{
		{"money that is used up exactly stops before the next call", money(worst), func(p *play) {
			p.answer(used(54, 3, asks("", "read a")))
			p.results("c1.1=A")
		}},
		{"a budget-exhausted condition makes the money stop ok", agent.Config{
			MaxTokens: 4, Limits: budget.Limits{USDPerRun: worst}, Conditions: []stop.Condition{{Kind: stop.BudgetExhausted}},
		}, func(p *play) {
			p.answer(used(54, 3, asks("", "read a")))
			p.results("c1.1=A")
		}},
		{"the input of earlier calls leaves no room for the next, which alone would fit", limit(budget.Limits{MaxInputTokens: 200}), func(p *play) {
			p.answer(used(60, 3, asks("", "read a")))
			p.results("c1.1=A")
		}},
		{"a condition about money has nothing to say of another budget", agent.Config{
			MaxTokens: 4, Limits: budget.Limits{USDPerRun: 100, MaxInputTokens: 53}, Conditions: []stop.Condition{{Kind: stop.BudgetExhausted}},
		}, func(p *play) {
			p.answer(used(53, 3, asks("", "read a")))
			p.results("c1.1=A")
		}},
		{"a final answer that used the money up is still the final answer", money(worst), func(p *play) {
			p.answer(used(54, 3, says("done")))
		}},
		{"a condition on money is met by the final answer that used it up", agent.Config{
			MaxTokens: 4, Limits: budget.Limits{USDPerRun: worst}, Conditions: []stop.Condition{{Kind: stop.BudgetExhausted}},
		}, func(p *play) {
			p.answer(used(54, 3, says("done")))
		}},
		{"the calls that the budget allows run and the others are told", limit(budget.Limits{MaxToolCalls: 2}), func(p *play) {
			p.answer(asks("", "read a", "nosuch b", "read c", "read d", "read e"))
			p.results("c1.1=A", "c1.3=C")
		}},
		{"a raise that comes in time lets the run go on", limit(budget.Limits{MaxToolCalls: 1}), func(p *play) {
			p.answer(asks("", "read a", "read b"))
			p.command(event.BudgetRaised{Setting: "max_tool_calls", Value: 5})
			p.results("c1.1=A")
			p.answer(asks("", "read b"))
			p.results("c2.1=B")
			p.answer(says("done"))
		}},
		{"a raise of what does not exist changes nothing", money(worst), func(p *play) {
			p.command(event.BudgetRaised{Setting: "max_patience", Value: 5})
			p.command(event.BudgetRaised{Setting: "max_cycles", Value: 2.5})
			p.answer(used(54, 3, asks("", "read a")))
			p.results("c1.1=A")
		}},
		{"wall time ends the run before its next call", limit(budget.Limits{MaxWallSeconds: 10}), func(p *play) {
			p.after(4 * time.Second)
			p.answer(asks("", "read a"))
			p.after(6 * time.Second)
			p.results("c1.1=A")
		}},
		{"parked time, lost time and a person's time are not the run's", agent.Config{
			Limits: budget.Limits{MaxWallSeconds: 10}, Policy: gated("send"),
		}, func(p *play) {
			p.after(4 * time.Second)
			p.answer(asks("", "send a"))
			p.after(time.Hour)
			p.decide("c1.1", event.ApprovalApproved, "")
			p.after(time.Second)
			p.results("c1.1=sent")
			p.crash()
			p.now = p.now.Add(time.Hour)
			p.resume()
			p.stop()
			p.command(event.RunParked{Reason: event.ParkInterrupted})
			p.now = p.now.Add(time.Hour)
			p.resume()
			p.after(4 * time.Second)
			p.answer(says("done in nine seconds"))
		}},
		{"a wait that outlasts the wall time is not begun", limit(budget.Limits{MaxWallSeconds: 10}), func(p *play) {
			p.breaks(llm.ClassThrottled, retryAfter(30*time.Second))
		}},
		{"a failed attempt that used the money up is not retried", money(worst), func(p *play) {
			p.breaks(llm.ClassNetwork, func(f *event.ModelAttemptFailed) {
				f.Usage, f.Cost = llm.Usage{Input: 53, Output: 4}, llm.Cost{USD: worst, Priced: true}
			})
		}},
		{"turns count answers, not attempts", limit(budget.Limits{MaxModelTurns: 1}), func(p *play) {
			p.breaks(llm.ClassNetwork)
			p.after(time.Second)
			p.answer(asks("", "read a"))
			p.results("c1.1=A")
		}},
		{"tokens that are used up stop the run", limit(budget.Limits{MaxOutputTokens: 4}), func(p *play) {
			p.answer(used(2, 3, asks("", "read a")))
			p.results("c1.1=A")
		}},
		{"a call that does not fit is refused and not billed", money(worst - 1), func(p *play) {
			p.note("nothing was called")
		}},
		{"the output cap is lowered before a call is refused", agent.Config{
			MaxTokens: 4000, Limits: budget.Limits{USDPerRun: 53 + 2000},
		}, func(p *play) {
			p.answer(used(53, 900, asks("", "read a")))
			p.results("c1.1=A")
		}},
		{"usage beyond its reservation and the cap is said, and nothing starts", money(worst), func(p *play) {
			p.answer(used(70, 3, asks("", "read a", "read b")))
		}},
		{"usage beyond its reservation alone is paid for", money(10 * worst), func(p *play) {
			p.answer(used(70, 3, asks("", "read a")))
			p.results("c1.1=A")
			p.answer(says("done"))
		}},
		{"a raise in time forgives an overrun", money(worst), func(p *play) {
			p.respond(used(70, 3, asks("", "read a")))
			p.step()
			p.command(event.BudgetRaised{Setting: "usd_per_run", Value: 1000})
			p.results("c1.1=A")
			p.answer(says("done"))
		}},
		{"a call whose process is gone is charged what was set aside", money(3*worst - 1), func(p *play) {
			p.crash()
			p.resume()
			p.crash()
			p.resume()
		}},
		{"what was set aside for a call that is not made is given back", money(10 * worst), func(p *play) {
			p.breaks(llm.ClassThrottled, retryAfter(30*time.Second))
			p.cancel()
		}},
		{"half, four fifths and all of a limit are said once each", limit(budget.Limits{MaxToolCalls: 5, MaxCycles: 4}), func(p *play) {
			p.answer(asks("", "read a", "read b", "read c"))
			p.results("c1.1=A", "c1.2=B", "c1.3=C")
			p.answer(asks("", "read d"))
			p.results("c2.1=D")
			p.command(event.BudgetRaised{Setting: "max_tool_calls", Value: 10})
			p.answer(asks("", "read e"))
			p.results("c3.1=E")
			p.answer(says("done"))
		}},
		{"a run that brings forth nothing new stops", limit(budget.Limits{MaxIdleSeconds: 10}), func(p *play) {
			p.answer(asks("I look", "read a"))
			p.after(9 * time.Second)
			p.results("c1.1=A")
			p.answer(asks("I look", "read a"))
			p.after(9 * time.Second)
			p.results("c2.1=A")
			p.answer(asks("I look", "read a"))
			p.after(time.Second)
			p.results("c3.1=A")
		}},
		{"a request that would be too large is not made", limit(budget.Limits{MaxRequestTokens: 100}), func(p *play) {
			p.answer(asks("", "read a"))
			p.results("c1.1=" + strings.Repeat("long ", 100))
		}},
		{"wall time that is used up while a call waits its turn keeps it from starting", limit(budget.Limits{MaxWallSeconds: 10}), func(p *play) {
			p.answer(asks("", "send a", "send b"))
			p.after(10 * time.Second)
			p.results("c1.1=A")
		}},
		{"wall time that is used up keeps calls from starting", limit(budget.Limits{MaxWallSeconds: 10}), func(p *play) {
			p.now = p.now.Add(11 * time.Second)
			p.answer(asks("", "read a"))
		}},
	})
}
