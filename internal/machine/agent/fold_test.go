package agent_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

func TestEventsThatDoNotFitARunAreRefused(t *testing.T) {
	result := event.ToolResult{CallID: "c1.1", Tool: "read"}
	for name, misfit := range map[string]func(p *play) event.Data{
		"a second start":                 func(p *play) event.Data { return event.RunStarted{} },
		"an answer to no call":           func(p *play) event.Data { p.answer(asks("", "read a")); return event.ModelResponse{Cycle: 1} },
		"an answer that loses its calls": func(p *play) event.Data { return event.ModelResponse{Cycle: 1, ToolCalls: []event.CallRef{{}}} },
		"a failure of no call":           func(p *play) event.Data { p.answer(asks("", "read a")); return event.ModelAttemptFailed{Attempt: 1} },
		"a second call in flight":        func(p *play) event.Data { return event.ModelRequested{Attempt: 2} },
		"a retry of what did not fail":   func(p *play) event.Data { return event.ModelRetrying{Attempt: 2} },
		"a cycle within a cycle":         func(p *play) event.Data { return event.CycleStart{Cycle: 2} },
		"a call of the model amid the calls": func(p *play) event.Data {
			p.answer(asks("", "read a"))
			return event.ModelRequested{Attempt: 1}
		},
		"a cycle that leaves one out": func(p *play) event.Data {
			p.respond(says("done"))
			return event.CycleStart{Cycle: 3}
		},
		"a nudge within a cycle": func(p *play) event.Data { return event.Nudge{Text: "go"} },
		"a result of no call":    func(p *play) event.Data { return result },
		"a second result": func(p *play) event.Data {
			p.answer(asks("", "read a", "read b"))
			p.results("c1.1=A")
			return result
		},
		"a result of an earlier cycle's call": func(p *play) event.Data {
			p.answer(asks("", "read a"))
			p.results("c1.1=A")
			return result
		},
		"a start of a settled call": func(p *play) event.Data {
			p.answer(asks("", "read a", "read b"))
			p.results("c1.1=A")
			return event.ToolStarted{CallID: "c1.1", Attempt: 2}
		},
		"a second tool_call": func(p *play) event.Data {
			p.answer(asks("", "read a"))
			return event.ToolCall{CallID: "c1.1"}
		},
		"the results before they are there": func(p *play) event.Data {
			p.answer(asks("", "read a"))
			return event.ToolResults{Cycle: 1}
		},
		"a fork while the model is called": func(p *play) event.Data { return event.RunForked{From: "r"} },
		"a fork amid the calls":            func(p *play) event.Data { p.answer(asks("", "read a")); return event.RunForked{From: "r"} },
		"a fork behind the reason of the end": func(p *play) event.Data {
			p.answer(asks("", "read a"))
			p.apply(event.RunTerminatedBy{Reason: event.ReasonInternal})
			return event.RunForked{From: "r"}
		},
		"an end without its reason": func(p *play) event.Data { return event.RunCompleted{} },
		"anything after the end": func(p *play) event.Data {
			p.answer(says("done"))
			return event.InputReceived{Text: "one more"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, agent.Config{})
			if err := p.try(misfit(p)); !errors.Is(err, agent.ErrMisfit) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAJournalOfANewerVersionIsRefused(t *testing.T) {
	for name, change := range map[string]func(*event.RunStarted){
		"vocabulary": func(s *event.RunStarted) { s.Vocabulary++ },
		"machine":    func(s *event.RunStarted) { s.Machine = "agent/2" },
		"projection": func(s *event.RunStarted) { s.Projection = "2" },
	} {
		started, err := agent.Start(config(agent.Config{}), llm.UserText("hi"))
		if err != nil {
			t.Fatal(err)
		}
		change(&started)
		err = agent.New().Apply(&event.Event{Seq: 1, Run: "r", Time: epoch, Data: started})
		if !errors.Is(err, agent.ErrUnsupported) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestUnknownEventsArePassedOver(t *testing.T) {
	p := newPlay(t, agent.Config{})
	before := p.live.State()
	p.apply(event.Unknown{Type: "weather.changed", Raw: []byte(`{"to":"rain"}`)})
	if diff := cmp.Diff(before, p.live.State()); diff != "" {
		t.Error(diff)
	}
	p.answer(says("done"))
	p.check()
}

var seedFlag = flag.Int("seed", 0, "play only this seed of the random plays")

// rows: ALDO-63
func TestAFoldOfAnyPrefixWantsWhatTheRunWanted(t *testing.T) {
	first, last := 1, 60
	if *seedFlag != 0 {
		first, last = *seedFlag, *seedFlag
	}
	for seed := first; seed <= last; seed++ {
		p := newPlay(t, randomConfig(rand.New(rand.NewPCG(uint64(seed), 1))))
		random := rand.New(rand.NewPCG(uint64(seed), 2))
		for range 60 {
			if p.live.State().Phase == machine.Ended {
				break
			}
			p.disturb(random)
			// The journal so far, folded without a question between.
			p.agree(p.refold(len(p.journal)), "a fold from scratch")
			p.alive()
		}
		p.finish()
		p.check()
		if t.Failed() {
			t.Fatalf("reproduce with: go test ./machine/agent -run TestAFold -seed=%d", seed)
		}
	}
}

func randomConfig(r *rand.Rand) agent.Config {
	cfg := agent.Config{
		Targets:   chain("m/a", "m/b", "m/c")[:1+r.IntN(3)],
		MaxTokens: 100,
		Limits: budget.Limits{
			MaxCycles: 1 + r.IntN(12), MaxToolCalls: 1 + r.IntN(20), MaxParallelTools: 1 + r.IntN(4),
			MaxWallSeconds: float64(1 + r.IntN(2000)), MaxOutputTokens: int64(r.IntN(2) * 500),
		},
		OnNoToolCall: pick(r, agent.NoToolCallFinish, agent.NoToolCallNudge, agent.NoToolCallStop),
		MaxNudges:    r.IntN(3),
		Dispatch:     pick(r, agent.OrderedGroups, agent.ParallelFirst, agent.ByResource, agent.ParallelAll, agent.Serial),
		Approve:      pick(r, agent.ApproveAsk, agent.ApproveAsk, agent.ApproveDeny, agent.ApproveAll),
	}
	if r.IntN(2) == 0 {
		cfg.Policy = gated("send", "get")
	}
	if r.IntN(4) == 0 {
		cfg.Conditions = []stop.Condition{{Kind: stop.TextIncludes, Text: "word 3"}, {Kind: stop.BudgetExhausted}}
	}
	if r.IntN(3) == 0 {
		cfg.Hooks = []agent.Hook{
			gate(event.HookBeforeTool, "guard", "put", "send", "get"), observer(event.HookBeforeTool, "log"), gate(event.HookAfterTool, "redact", "read"),
		}
	}
	return cfg
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// disturb lets one thing happen that may happen now.
func (p *play) disturb(r *rand.Rand) {
	p.t.Helper()
	p.now = p.now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
	parked := p.live.State().Phase == machine.Parked
	switch n := r.IntN(20); {
	case parked && n < 14:
		p.now = p.now.Add(time.Hour)
		p.resume()
	case n == 0:
		p.crash()
		p.resume()
	case n == 1:
		p.command(event.PauseRequested{})
	case n == 2:
		p.command(event.InputReceived{Text: fmt.Sprint("input ", r.IntN(100))})
	case n == 3:
		p.command(event.BudgetRaised{Setting: pick(r, "max_tool_calls", "max_wall_time_seconds", "nonsense"), Value: float64(1 + r.IntN(3000))})
	case n == 4 && r.IntN(6) == 0:
		p.cancel()
	case n == 5 && p.call != nil && !parked:
		p.breakAndPark()
	default:
		p.goOn(r)
	}
}

// goOn settles something that the run waits for.
func (p *play) goOn(r *rand.Rand) {
	p.t.Helper()
	pending := p.live.State().Pending
	switch ids := p.running(); {
	case len(p.hooks) > 0:
		answers := []event.HookResult{goesOn(), goesOn(), goesOn(), blocks("no"), wantsAPerson("sure?")}
		if id := pick(r, slices.Sorted(maps.Keys(p.hooks))...); p.hooks[id].Stage == event.HookAfterTool {
			p.heard(id, pick(r, answers[:4]...))
		} else {
			p.heard(id, pick(r, append(answers, rewrites(fmt.Sprint("f", r.IntN(9))))...))
		}
	case len(pending) > 0 && len(p.live.Config().Hooks) > 0 && r.IntN(2) == 0:
		p.edits(pick(r, pending...).ID, "e")
	case p.call != nil && r.IntN(4) == 0:
		class := pick(r, llm.ClassOverloaded, llm.ClassNetwork, llm.ClassThrottled, llm.ClassInterrupted, llm.ClassOverloaded, llm.ClassInvalid)
		p.breaks(class, func(f *event.ModelAttemptFailed) {
			if r.IntN(3) == 0 {
				f.RetryAfterMs = new(int64(r.IntN(90_000)))
			}
		})
	case p.call != nil:
		p.answer(randomAnswer(r))
	case len(ids) > 0:
		d := event.ToolResult{Output: fmt.Sprint("out ", r.IntN(100))}
		if r.IntN(4) == 0 {
			d.IsError, d.ErrorType = true, event.ErrorTool
		}
		d.EndsRun = r.IntN(40) == 0
		p.result(pick(r, ids...), d)
	case len(pending) > 0:
		kind := pick(r, event.ApprovalApproved, event.ApprovalApproved, event.ApprovalRejected, event.ApprovalExpired)
		p.decide(pick(r, pending...).ID, kind, "said so")
	default:
		p.after(90 * time.Second)
	}
}

func randomAnswer(r *rand.Rand) llm.Response {
	var calls []string
	for range r.IntN(6) {
		calls = append(calls, pick(r, "read", "get", "put", "send", "shell", "nosuch")+" "+pick(r, "a", "b", "d/e", "d", "bad"))
	}
	if len(calls) > 0 && r.IntN(12) == 0 {
		calls[0] = `put !{"path":"br`
	}
	text := ""
	if r.IntN(3) > 0 {
		text = fmt.Sprint("word ", r.IntN(30))
	}
	a := asks(text, calls...)
	a.Usage = llm.Usage{Input: int64(r.IntN(50)), Output: int64(r.IntN(101))}
	if r.IntN(8) == 0 {
		a.Finish = pick(r, llm.FinishLength, llm.FinishPause, llm.FinishMalformed, llm.FinishTool, llm.FinishEnd, llm.FinishRefusal, llm.FinishContext, llm.FinishFailed)
	}
	return a
}

// finish ends a run that is still going, by a cancel.
func (p *play) finish() {
	p.t.Helper()
	if p.live.State().Phase != machine.Ended {
		p.cancel()
	}
	if p.live.State().Phase != machine.Ended {
		p.t.Errorf("a cancel does not end the run:\n%s", p.log.String())
	}
}
