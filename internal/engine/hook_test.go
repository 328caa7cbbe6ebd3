package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// hooks gives the rig's runs hooks.
func (r *rig) hooks(hooks ...hook.Hook) *rig {
	r.env.Hooks, r.cfg.Hooks = hook.Named(hooks), nil
	for _, h := range r.env.Hooks {
		r.cfg.Hooks = append(r.cfg.Hooks, agent.Hook{Stage: h.Stage, Name: h.Name, Observer: h.Kind == hook.Observer, Tools: h.Tools})
	}
	return r
}

type hookFunc = func(context.Context, hook.Call) (hook.Answer, error)

func answers(a hook.Answer) hookFunc {
	return func(context.Context, hook.Call) (hook.Answer, error) { return a, nil }
}

func heard(events []event.Event) []event.HookResult {
	var out []event.HookResult
	for _, e := range events {
		if d, ok := e.Data.(event.HookResult); ok {
			d.DurationMs = 0
			out = append(out, d)
		}
	}
	return out
}

// say is a tool that gives back what it is given.
func say() tool.Tool {
	return tool.New("say", "Say it again.", func(_ context.Context, a struct {
		Text string `json:"text"`
	}) (string, error) {
		return "said " + a.Text, nil
	})
}

func saying(text string) []scripted.Turn {
	return []scripted.Turn{{ToolCalls: calls("say", `{"text":"`+text+`"}`)}, {Text: "done"}}
}

// rows: ALF-63, ALF-64, ALF-68
func TestAGateMayBlockACallOrRewriteItsInput(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer hook.Answer
		err    error
		want   string
		kind   event.ErrorType
	}{
		{"goes on", hook.Answer{}, nil, "said hi", ""},
		{"says that it allows", hook.Answer{Decision: event.HookContinue, Reason: "fine"}, nil, "said hi", ""},
		{"rewrites", hook.Answer{Args: json.RawMessage(`{"text":"ho"}`)}, nil, "said ho", ""},
		{"rewrites into what does not fit", hook.Answer{Args: json.RawMessage(`{"text":7}`)}, nil, "the hook gate gave this call other arguments, so it was not run", event.ErrorInvalidArgs},
		{"rewrites into what is no JSON", hook.Answer{Args: json.RawMessage(`{"text":`)}, nil, "no JSON", event.ErrorHookFailed},
		{"rewrites into what no journal is read with", hook.Answer{Args: json.RawMessage(`{"text":` + nested(9_998) + `}`)}, nil, "nested deeper than 1000 levels", event.ErrorHookFailed},
		{"blocks", hook.Answer{Decision: event.HookBlock, Reason: "not today"}, nil, "not today", event.ErrorHookBlocked},
		{"fails", hook.Answer{}, errors.New("the service is down"), "the service is down", event.ErrorHookFailed},
		{"says what nobody understands", hook.Answer{Decision: "maybe"}, nil, "maybe", event.ErrorHookFailed},
		{"says two things", hook.Answer{Decision: event.HookBlock, Args: json.RawMessage(`{}`)}, nil, "gave a rewrite", event.ErrorHookFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t).tools(say()).turns(saying("hi")...).hooks(hook.Hook{
				Stage: event.HookBeforeTool, Name: "gate",
				Run: func(context.Context, hook.Call) (hook.Answer, error) { return c.answer, c.err },
			})
			run := r.start(t.Context())
			outcome(t, run)
			got := results(r.whole(run.ID))[0]
			if got.ErrorType != c.kind || !strings.Contains(got.Output, c.want) {
				t.Errorf("got %+v", got)
			}
			r.replayed(run.ID)
		})
	}
}

func TestFailingHookClosesGateAndIsRecordedForObserver(t *testing.T) {
	const nilPointer = "runtime error: invalid memory address or nil pointer dereference"
	for _, kind := range []hook.Kind{hook.Gate, hook.Observer} {
		for _, c := range []struct {
			name, why string
			run       hookFunc
		}{
			{"panics", "it panicked: oh", func(context.Context, hook.Call) (hook.Answer, error) { panic("oh") }},
			{"gives an error that panics", "it gave an error of type *engine_test.brokenError that panicked when it was read: " + nilPointer, func(context.Context, hook.Call) (hook.Answer, error) {
				return hook.Answer{}, (*brokenError)(nil)
			}},
			{"takes too long", "it was stopped after its timeout of 3s", func(ctx context.Context, _ hook.Call) (hook.Answer, error) {
				<-ctx.Done()
				return hook.Answer{}, ctx.Err()
			}},
			{"takes too long and lets things go on", "it was stopped after its timeout of 3s", func(ctx context.Context, _ hook.Call) (hook.Answer, error) {
				<-ctx.Done()
				return hook.Answer{}, nil
			}},
			{"is deaf", "it was stopped after its timeout of 3s", func(context.Context, hook.Call) (hook.Answer, error) {
				time.Sleep(time.Hour)
				return hook.Answer{}, nil
			}},
		} {
			t.Run(string(kind)+" "+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t).tools(say()).turns(saying("hi")...).hooks(hook.Hook{
						Stage: event.HookBeforeTool, Name: "h", Kind: kind, Timeout: 3 * time.Second, Run: c.run,
					})
					started := r.start(t.Context())
					if o := outcome(t, started); o.Reason != event.ReasonFinalAnswer {
						t.Errorf("ended with %+v", o)
					}
					events := r.whole(started.ID)
					got := heard(events)[0]
					if !got.Failed || got.Reason != c.why || (got.Decision == event.HookBlock) != (kind == hook.Gate) {
						t.Errorf("recorded %+v", got)
					}
					if ran := results(events)[0].Output == "said hi"; ran != (kind == hook.Observer) {
						t.Errorf("the call gave %+v", results(events)[0])
					}
					time.Sleep(2 * time.Hour) // until the deaf one has heard enough
				})
			})
		}
	}
}

// rows: ALF-70
func TestWhatFailsAfterAToolIsRecordedAndSwallowed(t *testing.T) {
	var told hook.Call
	r := newRig(t).tools(say()).turns(saying("hi")...).hooks(
		hook.Hook{Stage: event.HookAfterTool, Name: "down", Run: func(_ context.Context, c hook.Call) (hook.Answer, error) {
			told = c
			return hook.Answer{}, errors.New("the service is down")
		}},
		hook.Hook{Stage: event.HookAfterTool, Name: "bold", Run: answers(hook.Answer{Output: new("nothing")})},
	)
	run := r.start(t.Context())
	if o := outcome(t, run); !o.OK || o.Cycles != 2 {
		t.Errorf("ended with %+v", o)
	}
	events := r.whole(run.ID)
	call := results(events)[0]
	want := []event.HookResult{
		{CallID: call.CallID, Hook: "down", Stage: event.HookAfterTool, Decision: event.HookContinue, Reason: "the service is down", Failed: true, Observer: true},
		{CallID: call.CallID, Hook: "bold", Stage: event.HookAfterTool, Decision: event.HookContinue, Reason: "an observer decides nothing, and it said rewrite", Failed: true, Observer: true},
	}
	if diff := cmp.Diff(want, heard(events)); diff != "" {
		t.Error(diff)
	}
	if told.Run != run.ID || told.CallID != call.CallID || told.Tool != "say" || string(told.Args) != `{"text":"hi"}` || told.Cycle != 1 || told.Result.Output != "said hi" {
		t.Errorf("the hook was told %+v", told)
	}
	r.replayed(run.ID)
}

func TestAGateAfterAToolDecidesWhatTheModelSees(t *testing.T) {
	for name, c := range map[string]struct {
		run  hookFunc
		want string
	}{
		"rewritten": {answers(hook.Answer{Output: new("said …")}), "said …"},
		"bounded":   {answers(hook.Answer{Output: new(strings.Repeat("x", 900))}), "characters left out"},
		"withheld":  {answers(hook.Answer{Decision: event.HookBlock, Reason: "it holds a key"}), "it holds a key"},
		"failed":    {func(context.Context, hook.Call) (hook.Answer, error) { panic("oh") }, "a gate that fails is closed"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen string
			model := modelFunc(func(_ context.Context, req *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
				for _, m := range req.Messages {
					for _, p := range m.Parts {
						if result, ok := p.(llm.ToolResult); ok {
							seen = result.Output
							return said("done"), nil
						}
					}
				}
				return &llm.Response{Parts: llm.Parts{llm.ToolCall{Name: "say", Args: json.RawMessage(`{"text":"key 1234"}`)}}, Finish: llm.FinishTool}, nil
			})
			r := newRig(t).tools(say()).model(model).hooks(hook.Hook{Stage: event.HookAfterTool, Kind: hook.Gate, Run: c.run})
			r.cfg.Limits.MaxResultChars = 200
			run := r.start(t.Context())
			outcome(t, run)
			if strings.Contains(seen, "1234") || !strings.Contains(seen, c.want) {
				t.Errorf("the model saw %q", seen)
			}
			r.whole(run.ID)
		})
	}
}

// waiting is a hook that waits until it is stopped, the first time, and then
// lets things go on.
func waiting(started chan<- struct{}) hookFunc {
	first := true
	return func(ctx context.Context, _ hook.Call) (hook.Answer, error) {
		if !first {
			return hook.Answer{}, nil
		}
		first = false
		started <- struct{}{}
		<-ctx.Done()
		return hook.Answer{}, nil
	}
}

func TestStoppedHookRunsAgainAfterResume(t *testing.T) {
	for _, stage := range hook.Stages() {
		if strings.Contains(string(stage), "compaction") {
			continue
		}
		t.Run(string(stage), func(t *testing.T) {
			started := make(chan struct{}, 1)
			r := newRig(t).tools(say()).turns(saying("hi")...).hooks(hook.Hook{Stage: stage, Run: waiting(started)})
			run := r.start(t.Context())
			<-started
			run.Interrupt()
			parkedAs(t, run, event.ParkInterrupted)
			if got := heard(r.journal(run.ID)); len(got) > 0 {
				t.Errorf("recorded %+v", got)
			}
			if o := outcome(t, r.other().resume(run.ID)); !o.OK {
				t.Errorf("ended with %+v", o)
			}
			if got := heard(r.whole(run.ID)); len(got) != 1 || got[0].Failed {
				t.Errorf("recorded %+v", got)
			}
			r.replayed(run.ID)
		})
	}
}

func TestCancelledRunSkipsHooksAndHidesUngatedResults(t *testing.T) {
	for _, stage := range []event.HookStage{event.HookBeforeRun, event.HookBeforeTool, event.HookAfterTool} {
		t.Run(string(stage), func(t *testing.T) {
			started := make(chan struct{}, 1)
			r := newRig(t).tools(say()).turns(saying("key 1234")...).hooks(hook.Hook{Stage: stage, Kind: hook.Gate, Run: waiting(started)})
			run := r.start(t.Context())
			<-started
			r.send(journal.Command{Run: run.ID, Kind: journal.Cancel})
			if o := outcome(t, run); o.Reason != event.ReasonCancelled {
				t.Errorf("ended with %+v", o)
			}
			r.whole(run.ID)
			m, err := r.Inspect(t.Context(), run.ID)
			if err != nil {
				t.Fatal(err)
			}
			conversation, err := m.(*agent.Machine).Conversation()
			if err != nil {
				t.Fatal(err)
			}
			for _, message := range conversation {
				for _, p := range message.Parts {
					if result, ok := p.(llm.ToolResult); ok && strings.Contains(result.Output, "1234") {
						t.Errorf("who continues the run sees %q", result.Output)
					}
				}
			}
		})
	}
}

func TestOnlyUnrecordedHookRunsAgainAfterCrash(t *testing.T) {
	for _, c := range []struct {
		crash string
		want  int
	}{{"hook.result", 2}, {"tool_result", 1}} {
		t.Run("at "+c.crash, func(t *testing.T) {
			n := 0
			store := &watched{Store: memory.New(nil), onAppend: failOnce(c.crash, errors.New("the disk is gone"))}
			r := newRig(t, store).tools(say()).turns(saying("hi")...).hooks(hook.Hook{
				Stage: event.HookBeforeTool, Run: func(context.Context, hook.Call) (hook.Answer, error) { n++; return hook.Answer{}, nil },
			})
			run := r.start(t.Context())
			if _, err := run.Wait(t.Context()); err == nil {
				t.Fatal("the run did not fail")
			}
			outcome(t, r.resume(run.ID))
			r.whole(run.ID)
			if n != c.want {
				t.Errorf("heard %d times, want %d", n, c.want)
			}
		})
	}
}

func TestAHookThatIsNotThereAnyMoreIsClosed(t *testing.T) {
	r := newRig(t).tools(say()).turns(saying("hi")...).hooks(hook.Hook{Stage: event.HookBeforeTool, Run: answers(hook.Answer{})})
	r.env.Hooks = nil
	run := r.start(t.Context())
	outcome(t, run)
	if got := results(r.whole(run.ID))[0]; got.ErrorType != event.ErrorHookFailed {
		t.Errorf("got %+v", got)
	}
}

// The steps of a call, each recorded by the code that performs it. Whether a result is
// trusted is settled before the hooks after the call run; the fence is put around what
// they leave of it.
//
// rows: ALF-65, ALF-66, ALF-72, HAR-1
func TestTheStepsOfACallComeInTheirOrder(t *testing.T) {
	var steps []string
	note := func(format string, args ...any) { steps = append(steps, fmt.Sprintf(format, args...)) }
	store := memory.New(nil)
	r := newRig(t, store)
	r.Engine = engine.New(store, newMachine, engine.Options{Observers: []perform.Observer{{
		Tool: func(ctx context.Context, _ perform.ToolCall, next func(context.Context) (tool.Result, error)) (tool.Result, error) {
			note("span")
			return next(ctx)
		},
	}}})
	echo := tool.New("say", "Say it again.", func(_ context.Context, a struct {
		Text string `json:"text"`
	}) (string, error) {
		note("call %s", a.Text)
		return "said " + a.Text, nil
	})
	echo.Describe = func(args json.RawMessage) string { note("validated %s", args); return "" }
	r.tools(echo).gate("say").hooks(
		hook.Hook{Stage: event.HookBeforeTool, Run: func(_ context.Context, c hook.Call) (hook.Answer, error) {
			note("before %s", c.Args)
			return hook.Answer{Args: json.RawMessage(`{"text":"ho"}`)}, nil
		}},
		hook.Hook{Stage: event.HookAfterTool, Run: func(_ context.Context, c hook.Call) (hook.Answer, error) {
			note("after %s, untrusted %v", c.Result.Output, c.Result.Untrusted)
			return hook.Answer{}, nil
		}},
	).asker(func(_ context.Context, p event.Question) (event.Resolution, error) {
		note("permission %s", p.What.(event.CallAsked).Args)
		return event.Resolution{Kind: event.ApprovalApproved, Approver: "ann"}, nil
	})
	r.model(modelFunc(func(_ context.Context, req *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
		if last := req.Messages[len(req.Messages)-1]; last.Role == llm.RoleTool {
			result := last.Parts[len(last.Parts)-1].(llm.ToolResult)
			fenced := strings.HasPrefix(result.Output, "<untrusted id=") && strings.Contains(result.Output, "\nsaid ho\n</untrusted ")
			note("outcome fenced %v, error %v", fenced, result.IsError)
			return said("done"), nil
		}
		return &llm.Response{Finish: llm.FinishTool, Parts: llm.Parts{
			llm.ToolCall{Name: "nosuch", Args: json.RawMessage(`{}`)},
			llm.ToolCall{Name: "say", Args: json.RawMessage(`{"text":7}`)},
			llm.ToolCall{Name: "say", Args: json.RawMessage(`{"text":"hi"}`)},
		}}, nil
	}))
	started, err := agent.Start(r.cfg.WithDefaults(), llm.UserText("do it"))
	if err != nil {
		t.Fatal(err)
	}
	started.Fence = &event.Fence{}
	run, err := r.Start(t.Context(), started, r.env)
	if err != nil {
		t.Fatal(err)
	}
	outcome(t, run)
	want := []string{
		`validated {"text":"hi"}`, `before {"text":"hi"}`, `validated {"text":"ho"}`, `permission {"text":"ho"}`,
		"span", "call ho", "after said ho, untrusted true", "outcome fenced true, error false",
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Error(diff)
	}
	var kinds []event.ErrorType
	for _, result := range results(r.whole(run.ID)) {
		kinds = append(kinds, result.ErrorType)
	}
	if !slices.Equal(kinds, []event.ErrorType{event.ErrorUnknownTool, event.ErrorInvalidArgs, ""}) {
		t.Errorf("the results are of %q", kinds)
	}
}

func TestHooksSeeTheRunBeginAndEndAndMayKeepItFromBeginning(t *testing.T) {
	var outcomes []event.Reason
	tell := hook.Hook{Stage: event.HookAfterRun, Run: func(_ context.Context, c hook.Call) (hook.Answer, error) {
		outcomes = append(outcomes, c.Outcome.Reason)
		return hook.Answer{}, errors.New("nobody listens")
	}}
	r := newRig(t).tools(say()).turns(saying("hi")...).hooks(tell, hook.Hook{Stage: event.HookBeforeRun, Run: answers(hook.Answer{})})
	run := r.start(t.Context())
	if o := outcome(t, run); !o.OK {
		t.Errorf("ended with %+v", o)
	}
	r.replayed(run.ID)
	r.hooks(tell, hook.Hook{Stage: event.HookBeforeRun, Name: "hours", Run: answers(hook.Answer{Decision: event.HookBlock, Reason: "it is late"})})
	run = r.start(t.Context())
	o := outcome(t, run)
	if o.Reason != event.ReasonPolicyDenied || o.OK || o.Cycles != 0 || o.Error == nil || !strings.Contains(o.Error.Message, "the hook hours did not let the run begin: it is late") {
		t.Errorf("ended with %+v", o)
	}
	if n := count(r.whole(run.ID), "model.requested"); n > 0 {
		t.Error("a model was called")
	}
	r.replayed(run.ID)
	if !slices.Equal(outcomes, []event.Reason{event.ReasonFinalAnswer, event.ReasonPolicyDenied}) {
		t.Errorf("told of %v", outcomes)
	}
}

// A cancel of an undriven run ends it without its hooks.
func TestUndrivenRunIsCancelledWithoutLastHooks(t *testing.T) {
	r := newRig(t).tools(say()).gate("say").turns(scripted.Turn{ToolCalls: calls("say", `{"text":"hi"}`)}).
		hooks(
			hook.Hook{Stage: event.HookAfterRun, Name: "tell", Run: answers(hook.Answer{})},
			hook.Hook{Stage: event.HookAfterRun, Name: "log", Run: answers(hook.Answer{})},
		)
	run := r.start(t.Context())
	parkedAs(t, run, event.ParkApproval)
	r.send(journal.Command{Run: run.ID, Kind: journal.Cancel, By: "somebody"})
	unheard := event.HookResult{
		Hook: "tell", Stage: event.HookAfterRun, Decision: event.HookContinue, Observer: true, Failed: true,
		Reason: "the run was cancelled while no process drove it, so the hook did not run",
	}
	second := unheard
	second.Hook = "log"
	if diff := cmp.Diff([]event.HookResult{unheard, second}, heard(r.whole(run.ID))); diff != "" {
		t.Errorf("(-want +recorded):\n%s", diff)
	}
	r.replayed(run.ID)
}

func TestRecordedHooksSayWhatTheySaidAndDoNothing(t *testing.T) {
	var heardLive atomic.Int64
	live := func(a hook.Answer, err error) hookFunc {
		return func(context.Context, hook.Call) (hook.Answer, error) { heardLive.Add(1); return a, err }
	}
	r := newRig(t).tools(say()).turns(
		scripted.Turn{ToolCalls: calls("say", `{"text":"hi"}`, "say", `{"text":"key"}`)}, scripted.Turn{Text: "done"},
	).hooks(
		hook.Hook{Stage: event.HookBeforeRun, Run: live(hook.Answer{}, nil)},
		hook.Hook{Stage: event.HookBeforeTool, Name: "rewrite", Run: func(_ context.Context, c hook.Call) (hook.Answer, error) {
			heardLive.Add(1)
			if strings.Contains(string(c.Args), "hi") {
				return hook.Answer{Args: json.RawMessage(`{"text":"ho"}`)}, nil
			}
			return hook.Answer{}, errors.New("down")
		}},
		hook.Hook{Stage: event.HookAfterTool, Name: "redact", Kind: hook.Gate, Run: live(hook.Answer{Output: new("…")}, nil)},
		hook.Hook{Stage: event.HookAfterRun, Run: live(hook.Answer{}, errors.New("nobody listens"))},
	)
	first := r.start(t.Context())
	outcome(t, first)
	want, n := heard(r.whole(first.ID)), heardLive.Load()
	tools, err := replay.Tools(t.Context(), r.Past(), first.ID, r.env.Tools)
	if err != nil {
		t.Fatal(err)
	}
	again := r.other()
	again.env.Tools = tools
	if again.env.Hooks, err = replay.Hooks(t.Context(), r.Past(), first.ID, r.env.Hooks); err != nil {
		t.Fatal(err)
	}
	again.turns(scripted.Turn{ToolCalls: calls("say", `{"text":"hi"}`, "say", `{"text":"key"}`)}, scripted.Turn{Text: "done"})
	second := again.start(t.Context())
	outcome(t, second)
	got := heard(again.whole(second.ID))
	if heardLive.Load() != n {
		t.Errorf("%d hooks were heard live", heardLive.Load()-n)
	}
	name := func(h event.HookResult) string {
		if h.Observer {
			return h.Hook // an observer is not heard, so it cannot have failed
		}
		h.CallID = ""
		return fmt.Sprintf("%+v", h)
	}
	names := func(hooks []event.HookResult) []string {
		var out []string
		for _, h := range hooks {
			out = append(out, name(h))
		}
		slices.Sort(out)
		return out
	}
	if diff := cmp.Diff(names(want), names(got)); diff != "" {
		t.Errorf("(-recorded +said):\n%s", diff)
	}
}
