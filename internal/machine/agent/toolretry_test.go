package agent_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// flop is an attempt at a call that failed and that another may cure, as a
// driver settles it: as the call's result where the machine wants no other.
func (p *play) flop(id string, wait ...time.Duration) event.Data {
	p.t.Helper()
	run, ok := p.runs[id]
	if !ok {
		p.t.Fatalf("%s does not run:\n%s", id, p.log.String())
	}
	r := event.ToolResult{
		CallID: id, Tool: run.Tool, IsError: true, ErrorType: event.ErrorTimeout, Retryable: true,
		Output: agent.ErrorOutput(event.ErrorTimeout, "no answer"),
	}
	delete(p.runs, id)
	if !run.Retries {
		return r
	}
	d := event.ToolAttemptFailed{CallID: id, Attempt: run.Attempt, Result: r}
	for _, w := range wait {
		d.RetryAfterMs = new(w.Milliseconds())
	}
	return d
}

func (p *play) flops(id string, wait ...time.Duration) {
	p.t.Helper()
	p.command(p.flop(id, wait...))
}

// rows: HAR-42, HAR-50, HAR-53..60
func TestToolCallsAreTriedAgain(t *testing.T) {
	retries := func(n int) agent.Config { return agent.Config{Limits: budget.Limits{MaxToolRetries: &n}} }
	golden(t, "toolretry", []scenario{
		{"a read is tried again after a growing wait, and has one result", agent.Config{}, func(p *play) {
			p.answer(asks("", "read a"))
			p.flops("c1.1")
			p.after(2 * time.Second)
			p.flops("c1.1")
			p.after(2 * time.Second)
			p.results("c1.1=A")
			p.answer(says("done"))
		}},
		{"the last attempt's failure is the result", retries(1), func(p *play) {
			p.answer(asks("", "put a"))
			p.flops("c1.1")
			p.after(2 * time.Second)
			p.flops("c1.1")
		}},
		{"an owner may allow none", retries(0), func(p *play) {
			p.answer(asks("", "read a"))
			p.flops("c1.1")
		}},
		{"what is not declared to be repeatable runs once", agent.Config{Dispatch: agent.ParallelAll}, func(p *play) {
			p.answer(asks("", "send a", "shell b"))
			p.flops("c1.1")
			p.flops("c1.2")
		}},
		{"an approval is good for one attempt", agent.Config{Policy: gated("put")}, func(p *play) {
			p.answer(asks("", "put a"))
			p.decide("c1.1", event.ApprovalApproved, "")
			p.flops("c1.1")
		}},
		{"arguments that do not fit go back to the model, which corrects them", agent.Config{}, func(p *play) {
			p.answer(asks("", "read bad"))
			p.answer(asks("", "read good"))
			p.results("c2.1=A")
		}},
		{"the other side says how long to wait", agent.Config{}, func(p *play) {
			p.answer(asks("", "read a"))
			p.flops("c1.1", time.Minute)
			p.after(time.Minute)
			p.results("c1.1=A")
		}},
		{"a wait of more than a minute is the model's to know", agent.Config{}, func(p *play) {
			p.answer(asks("", "read a"))
			p.flops("c1.1", 61*time.Second)
		}},
		{"there is no wait beyond the run's time", agent.Config{Limits: budget.Limits{MaxWallSeconds: 10}}, func(p *play) {
			p.answer(asks("", "read a"))
			p.flops("c1.1", 10*time.Second)
		}},
		{"once a limit is overrun the failure is the result", agent.Config{MaxTokens: 4, Limits: budget.Limits{USDPerRun: 1000}}, func(p *play) {
			p.answer(used(70, 3, asks("", "read a")))
			p.raise("usd_per_run", 60)
			p.flops("c1.1")
		}},
		{"another attempt is no other call of the budget's", agent.Config{Limits: budget.Limits{MaxToolCalls: 1}}, func(p *play) {
			p.answer(asks("", "read a"))
			p.flops("c1.1")
			p.after(time.Second)
			p.results("c1.1=A")
			p.answer(says("done"))
		}},
		{"what comes after waits with it, what runs beside it does not", agent.Config{}, func(p *play) {
			p.answer(asks("", "read a", "read b", "put c"))
			p.flops("c1.1")
			p.results("c1.2=B")
			p.after(time.Second)
			p.results("c1.1=A", "c1.3=C")
		}},
		{"nobody is asked, and no time is free, while a wait goes on", agent.Config{Policy: gated("send"), Dispatch: agent.ParallelAll}, func(p *play) {
			p.answer(asks("", "read a", "send b"))
			p.flops("c1.1")
			p.after(time.Second)
			p.results("c1.1=A")
			p.decide("c1.2", event.ApprovalRejected, "no")
		}},
		{"a cancel ends the wait", agent.Config{}, func(p *play) {
			p.answer(asks("", "read a"))
			p.flops("c1.1")
			p.cancel()
		}},
		{"a cancel of a run that died before the decision", agent.Config{}, func(p *play) {
			p.answer(asks("", "read a"))
			p.apply(p.flop("c1.1"))
			p.crash()
			p.apply(event.RunResumed{})
			p.cancel()
		}},
		{"a run that died before the decision makes it when it goes on", agent.Config{}, func(p *play) {
			p.answer(asks("", "read a"))
			p.apply(p.flop("c1.1"))
			p.crash()
			p.resume()
			p.after(time.Second)
			p.results("c1.1=A")
		}},
		{"a wait goes on after a crash, and the count with it", retries(2), func(p *play) {
			p.answer(asks("", "put a"))
			p.flops("c1.1", 30*time.Second)
			p.crash()
			p.now = p.now.Add(10 * time.Second)
			p.resume()
			p.after(20 * time.Second)
			p.crash()
			p.resume()
			p.flops("c1.1")
			p.after(time.Second)
			p.flops("c1.1")
		}},
		{"an attempt whose process died costs no retry", retries(1), func(p *play) {
			p.answer(asks("", "put a"))
			p.crash()
			p.resume()
			p.flops("c1.1")
			p.after(time.Second)
			p.results("c1.1=A")
		}},
		{"a cancel during the wait of a call that was made again after a crash", agent.Config{}, func(p *play) {
			p.answer(asks("", "put a"))
			p.crash()
			p.resume()
			p.flops("c1.1")
			p.cancel()
		}},
		{"a raised limit allows more", retries(0), func(p *play) {
			p.command(event.BudgetRaised{Setting: "max_retries_per_tool_call", Value: 1})
			p.answer(asks("", "read a"))
			p.flops("c1.1")
			p.after(time.Second)
			p.results("c1.1=A")
		}},
	})
}

func TestEveryAttemptAtACallHasItsKey(t *testing.T) {
	p := newPlay(t, agent.Config{})
	p.answer(asks("", "put a"))
	first := p.runs["c1.1"]
	p.flops("c1.1")
	p.after(time.Second)
	second := p.runs["c1.1"]
	if first.Key == "" || first.Key != second.Key || first.Attempt != 1 || second.Attempt != 2 {
		t.Errorf("attempt %d with key %q, then %d with %q", first.Attempt, first.Key, second.Attempt, second.Key)
	}
}

// The time between two attempts is the run's own, though a person is being
// waited for as well.
func TestTheWaitForAnotherAttemptCountsAsTimeOfTheRun(t *testing.T) {
	p := newPlay(t, agent.Config{Policy: gated("send"), Dispatch: agent.ParallelAll, Limits: budget.Limits{MaxWallSeconds: 100}})
	p.answer(asks("", "read a", "send b"))
	p.flops("c1.1", 50*time.Second)
	p.after(50 * time.Second)
	p.results("c1.1=A")
	p.decide("c1.2", event.ApprovalRejected, "no")
	if left := p.live.State().Deadline.At.Sub(p.now); left != 50*time.Second {
		t.Errorf("after a wait of 50 s of 100 there are %s left", left)
	}
}

func TestFailureOfUnknownAttemptIsAMisfit(t *testing.T) {
	for name, d := range map[string]event.Data{
		"a failure of a call that does not run": event.ToolAttemptFailed{CallID: "c1.2", Attempt: 1},
		"a failure of no call":                  event.ToolAttemptFailed{CallID: "c9.9", Attempt: 1},
		"a further attempt without a failure":   event.ToolRetrying{CallID: "c1.1", Attempt: 2},
	} {
		p := newPlay(t, agent.Config{})
		p.answer(asks("", "send a", "send b"))
		if err := p.try(d); !errors.Is(err, agent.ErrMisfit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A pause finds nothing under way while a tool waits for its next attempt, so the
// run parks there as it does while it waits for its model.
func TestAPauseParksARunThatOnlyWaitsForAnotherAttempt(t *testing.T) {
	paused := func(p *play) bool {
		s := p.live.State()
		return s.Phase == machine.Parked && s.Parked.Reason == event.ParkPaused && len(p.runs) == 0
	}
	t.Run("that waits when it is told", func(t *testing.T) {
		p := newPlay(t, agent.Config{})
		p.answer(asks("", "read a", "put b"))
		p.flops("c1.1", time.Minute)
		p.command(event.PauseRequested{})
		if !paused(p) {
			t.Fatalf("it goes on:\n%s", p.log.String())
		}
		p.now = p.now.Add(20 * time.Second)
		p.resume()
		if len(p.runs) != 0 {
			t.Fatalf("the attempt is made before its time:\n%s", p.log.String())
		}
		p.after(40 * time.Second)
		p.results("c1.1=A", "c1.2=B")
		p.concludes()
	})
	t.Run("that waits after it was told", func(t *testing.T) {
		p := newPlay(t, agent.Config{})
		p.answer(asks("", "read a"))
		p.command(event.PauseRequested{})
		p.flops("c1.1", time.Minute)
		if !paused(p) {
			t.Errorf("it goes on:\n%s", p.log.String())
		}
		p.check()
	})
	for what, c := range map[string]struct {
		cfg        agent.Config
		begin, end func(*play)
	}{
		"another call is under way": {agent.Config{}, func(*play) {}, func(p *play) { p.results("c1.2=B") }},
		"a person is asked": {agent.Config{Policy: policy.Rules{Gates: []string{"scan"}}}, func(p *play) { p.results("c1.2=B") },
			func(p *play) { p.decide("c1.3", event.ApprovalRejected, "no") }},
		"a hook is heard": {hooked(observer(event.HookAfterTool, "log", "read")), func(p *play) { p.results("c1.2=B") },
			func(p *play) { p.heard("after_tool/log/c1.2", goesOn()) }},
	} {
		t.Run("and not while "+what, func(t *testing.T) {
			p := newPlay(t, c.cfg)
			asked := []string{"read a", "read b"}
			if len(c.cfg.Policy.Gates) > 0 {
				asked = append(asked, "scan c")
			}
			p.answer(asks("", asked...))
			c.begin(p)
			p.flops("c1.1", time.Minute)
			p.command(event.PauseRequested{})
			if p.live.State().Phase == machine.Parked {
				t.Fatalf("it parks:\n%s", p.log.String())
			}
			c.end(p)
			if !paused(p) {
				t.Errorf("it goes on:\n%s", p.log.String())
			}
			p.check()
		})
	}
}
