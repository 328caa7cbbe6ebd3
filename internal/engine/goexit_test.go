package engine_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// The first cycle is driven by the run's own goroutine or by that of the call
// before it, as it happens; the second one by that of the first call.
func TestARunEndsWhenCodeOfOthersEndsTheGoroutineThatDrivesIt(t *testing.T) {
	const moment = time.Second
	leaveSecond := func() func() {
		n := 0
		return func() {
			if n++; n == 2 {
				runtime.Goexit()
			}
		}
	}
	for name, breakIt := range map[string]func(*rig){
		"what a tool declares of the first call": func(r *rig) {
			r.tools(tool.Tool{Name: "work", Schema: anyObject, Run: worked, Facts: func(json.RawMessage) event.Facts { runtime.Goexit(); return event.Facts{} }})
		},
		"what a tool declares of the second call": func(r *rig) {
			leave := leaveSecond()
			r.tools(tool.Tool{Name: "work", Schema: anyObject, Run: worked, Describe: func(json.RawMessage) string { leave(); return "" }})
		},
		"the encoder of the first request": func(r *rig) {
			model, _, _ := r.env.Model("")
			r.env.Model = func(string) (llm.Model, string, error) {
				return encoderFunc{model, func(*llm.Request) (*llm.Encoded, error) { runtime.Goexit(); return nil, nil }}, "m", nil
			}
		},
		"whoever knows the models, at the second request": func(r *rig) {
			model, _, _ := r.env.Model("")
			leave := leaveSecond()
			r.env.Model = func(string) (llm.Model, string, error) { leave(); return model, "m", nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t).tools(tool.Tool{Name: "work", Schema: anyObject, Run: worked}).turns(
					scripted.Turn{Delay: moment, ToolCalls: calls("work", `{"n":1}`)},
					scripted.Turn{Delay: moment, ToolCalls: calls("work", `{"n":2}`)}, scripted.Turn{Text: "done"})
				breakIt(r)
				run := r.start(t.Context())
				state, err := run.Wait(t.Context())
				if err == nil || !strings.Contains(err.Error(), "ended the goroutine that drives the run") {
					t.Errorf("error %v", err)
				}
				if state.Outcome == nil || state.Outcome.Reason != event.ReasonInternal {
					t.Errorf("outcome %+v", state.Outcome)
				}
				r.whole(run.ID)
			})
		})
	}
}

func worked(context.Context, tool.Call) (tool.Result, error) {
	time.Sleep(time.Second)
	return tool.Result{Output: "worked"}, nil
}

// What was to begin in the same moment is not left behind: it would be waited for.
func TestQueuedEffectsSettleWhenToolTimeoutEndsGoroutine(t *testing.T) {
	late := tool.Tool{Name: "late", Schema: anyObject, Concurrent: true, Run: worked, TimeoutFor: func(json.RawMessage) time.Duration { runtime.Goexit(); return 0 }}
	for name, first := range map[string]string{"an agent": "ask", "a tool": "work"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				child := newRig(t).turns(scripted.Turn{Text: "42"})
				r := newRig(t, child.store).tools(tool.Tool{Name: "work", Schema: anyObject, Concurrent: true, Run: worked}, late).
					turns(scripted.Turn{ToolCalls: calls(first, task, "late", "{}")}).offers("ask", child)
				r.cfg.Dispatch = agent.ParallelAll
				closed := false
				r.env.Close = func() error { closed = true; return nil }
				run := r.start(t.Context())
				state, err := run.Wait(t.Context())
				if err == nil || !strings.Contains(err.Error(), "ended the goroutine that drives the run") {
					t.Errorf("error %v", err)
				}
				if o := state.Outcome; o == nil || !strings.Contains(o.NextSafeAction, "continue the run") {
					t.Errorf("outcome %+v", o)
				}
				if !closed {
					t.Error("its environment was not closed")
				}
				r.ended(run.ID)
			})
		})
	}
}

func TestARunIsDoneWhoseEnvironmentBreaksWhenItIsClosed(t *testing.T) {
	for want, breaks := range map[string]func(){
		"closes the run's environment ended its goroutine":    runtime.Goexit,
		"closing the run's environment panicked: it is stuck": func() { panic("it is stuck") },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t).turns(scripted.Turn{Text: "done"})
			r.env.Close = func() error { breaks(); return nil }
			run := r.start(t.Context())
			state, err := run.Wait(t.Context())
			if o := state.Outcome; o == nil || !o.OK {
				t.Errorf("outcome %+v", o)
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
}

// A step's run is driven on a goroutine of its workflow, which loses no more than that.
func TestStepIsDoneIfClosingItsEnvironmentEndsGoroutine(t *testing.T) {
	r := newRig(t).turns(scripted.Turn{Text: "done"})
	r.env.Close = func() error { runtime.Goexit(); return nil }
	begin := func(json.RawMessage) (event.RunStarted, perform.Env, error) { return r.started(), r.env, nil }
	started, err := flow.Start(flow.Config{Plan: plan.Plan{Steps: []plan.Step{doneBy("only")}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(r.store, versions.Make, engine.Options{})
	defer func() { _ = e.Close() }()
	run, err := e.Start(t.Context(), started, perform.Env{Children: map[string]perform.Child{"worker": {Begin: begin}}})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := run.Wait(t.Context()); err != nil || state.Outcome == nil || state.Outcome.FinalOutput != "done" {
		t.Fatalf("%+v, %v", state.Outcome, err)
	}
}
