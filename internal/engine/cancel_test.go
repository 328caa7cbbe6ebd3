package engine_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// rows: HAR-17
func TestACancelReachesToolsAndSettlesEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan struct{}, 2)
		read := blocking("read", started)
		read.ReadOnly, read.Concurrent = true, true
		r := newRig(t).tools(read, blocking("write", started)).
			turns(scripted.Turn{ToolCalls: calls("read", "{}", "read", "{}", "write", "{}")})
		ctx, cancel := context.WithCancel(t.Context())
		run := r.start(ctx)
		<-started
		<-started
		cancel()
		o := outcome(t, run)
		if o.Status != event.StatusCancelled || o.Reason != event.ReasonCancelled {
			t.Errorf("outcome %+v", o)
		}
		for _, res := range results(r.whole(run.ID)) {
			if res.ErrorType != event.ErrorCancelled || !structured(res) {
				t.Errorf("result of %s is %s: %s", res.CallID, res.ErrorType, res.Output)
			}
		}
	})
}

// structured reports whether a failure's text for the model is an object that names its
// kind.
func structured(r event.ToolResult) bool {
	var said struct{ Error, Type string }
	err := json.Unmarshal([]byte(r.Output), &said)
	return err == nil && r.IsError && said.Error != "" && said.Type == string(r.ErrorType)
}

func TestACancelReachesTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).turns(scripted.Turn{Text: "too late", Delay: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		run := r.start(ctx)
		synctest.Wait()
		began := time.Now()
		cancel()
		if o := outcome(t, run); o.Status != event.StatusCancelled || time.Since(began) != 0 {
			t.Errorf("outcome %+v after %s", o, time.Since(began))
		}
		r.whole(run.ID)
	})
}

// rows: ALF-42
func TestAWaitBeforeARetryEndsAtOnceWhenTheRunIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		after := 50 * time.Second
		r := newRig(t).turns(scripted.Turn{Error: &scripted.Failure{Class: llm.ClassThrottled, RetryAfter: &after}}, scripted.Turn{Text: "never"})
		ctx, cancel := context.WithCancel(t.Context())
		run := r.start(ctx)
		time.Sleep(21 * time.Second) // no heartbeat falls on this moment
		if row, err := r.store.Run(t.Context(), run.ID); err != nil || row.State != journal.Waiting {
			t.Errorf("the run's row says %s while it waits (%v)", row.State, err)
		}
		cancel()
		began := time.Now()
		if o := outcome(t, run); o.Status != event.StatusCancelled || time.Since(began) != 0 {
			t.Errorf("outcome %+v after %s", o, time.Since(began))
		}
	})
}

func TestARunWhoseContextHasEndedIsNotCreated(t *testing.T) {
	r := newRig(t).turns()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	closed := 0
	r.env.Close = func() error { closed++; return nil }
	started, err := agent.Start(r.cfg.WithDefaults(), llm.UserText("do it"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Start(ctx, started, r.env)
	mustBe(t, err, context.Canceled)
	rows, err := r.store.Runs(t.Context(), journal.Filter{})
	if err != nil || len(rows) != 0 || closed != 1 {
		t.Errorf("%d runs (%v); the environment was closed %d times", len(rows), err, closed)
	}
}

// rows: ALF-8, ALF-42
func TestACancelThatComesBeforeTheFirstCallLeavesTheModelAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		store := &watched{Store: memory.New(nil)}
		called := false
		r := newRig(t, store).model(modelFunc(func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
			called = true
			return said("done"), nil
		}))
		parked := r.gate("none").start(ctxEndedAfterCreate{ctx, cancel})
		if o := outcome(t, parked); o.Status != event.StatusCancelled || called {
			t.Errorf("outcome %+v, model called: %t", o, called)
		}
		if n := count(r.whole(parked.ID), "cycle.start"); n != 0 {
			t.Errorf("%d cycles were begun", n)
		}
	})
}

// ctxEndedAfterCreate ends once it has been asked whether it has: at the time
// that Start looks, it has not.
type ctxEndedAfterCreate struct {
	context.Context
	end context.CancelFunc
}

func (c ctxEndedAfterCreate) Err() error {
	err := c.Context.Err()
	c.end()
	return err
}

func TestAToolThatIgnoresItsContextIsSettledAfterAGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, started := make(chan struct{}), make(chan struct{})
		var closed atomic.Bool
		deaf := toolFunc("deaf", func(context.Context) (string, error) {
			close(started)
			<-release
			if closed.Load() {
				t.Error("the environment was closed while a tool still used it")
			}
			return "too late", nil
		})
		r := newRig(t).tools(deaf).turns(scripted.Turn{ToolCalls: calls("deaf", "{}")})
		r.env.Close = func() error { closed.Store(true); return nil }
		ctx, cancel := context.WithCancel(t.Context())
		run := r.start(ctx)
		<-started
		began := time.Now()
		cancel()
		if o := outcome(t, run); o.Status != event.StatusCancelled {
			t.Errorf("outcome %+v", o)
		}
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("the tool was waited for %s", waited)
		}
		if res := results(r.whole(run.ID)); len(res) != 1 || res[0].ErrorType != event.ErrorCancelled {
			t.Errorf("results %+v", res)
		}
		close(release)
		synctest.Wait()
		if !closed.Load() {
			t.Error("the environment is still open after the tool has returned")
		}
	})
}

func TestModelThatIgnoresItsContextIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, started := make(chan struct{}), make(chan struct{})
		r := newRig(t).model(modelFunc(func(_ context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
			emit(llm.Delta{Kind: llm.DeltaText, Text: "early"})
			close(started)
			<-release
			emit(llm.Delta{Kind: llm.DeltaText, Text: "late"})
			return said("late"), nil
		}))
		ctx, cancel := context.WithCancel(t.Context())
		run := r.start(ctx)
		heard := make(chan []event.Event)
		go func() { heard <- drain(t, run, true) }()
		<-started
		cancel()
		if o := outcome(t, run); o.Status != event.StatusCancelled {
			t.Errorf("outcome %+v", o)
		}
		close(release)
		for _, e := range <-heard {
			if d, ok := e.Data.(event.Text); ok && d.Text == "late" {
				t.Error("an attempt that was given up still speaks")
			}
		}
	})
}

// rows: HAR-18
func TestAToolIsStoppedAtItsTimeoutAndTheRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := blocking("slow", make(chan struct{}, 1))
		slow.Timeout = 3 * time.Second
		r := newRig(t).tools(slow).turns(scripted.Turn{ToolCalls: calls("slow", "{}")}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		if res := results(r.whole(run.ID)); res[0].ErrorType != event.ErrorTimeout || res[0].DurationMs != 3000 || !structured(res[0]) {
			t.Errorf("result %+v", res[0])
		}
	})
}

// rows: HAR-18
func TestTheWallTimeBudgetStopsWhatIsInFlight(t *testing.T) {
	for name, turn := range map[string]scripted.Turn{
		"a tool":  {ToolCalls: calls("slow", "{}")},
		"a model": {Text: "too late", Delay: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t).tools(blocking("slow", make(chan struct{}, 1))).turns(turn)
				r.cfg.Limits.MaxWallSeconds = 30
				began := time.Now()
				run := r.start(t.Context())
				o := outcome(t, run)
				if o.Reason != event.BudgetReason("max_wall_time_seconds") || time.Since(began) != 30*time.Second {
					t.Errorf("outcome %+v after %s", o, time.Since(began))
				}
				for _, res := range results(r.whole(run.ID)) {
					if res.ErrorType != event.ErrorTimeout || !structured(res) {
						t.Errorf("result %+v", res)
					}
				}
			})
		})
	}
}

// rows: ALDO-55, HAR-3
func TestWhatPanicsInAToolBecomesItsResult(t *testing.T) {
	base := func() tool.Tool { return toolFunc("bad", func(context.Context) (string, error) { return "fine", nil }) }
	for name, breakIt := range map[string]func(*tool.Tool){
		"the tool itself": func(b *tool.Tool) {
			b.Run = func(context.Context, tool.Call) (tool.Result, error) { panic("boom") }
		},
		"its end of the goroutine": func(b *tool.Tool) {
			b.Run = func(context.Context, tool.Call) (tool.Result, error) { runtime.Goexit(); return tool.Result{}, nil }
		},
		"the error that it gives": func(b *tool.Tool) {
			b.Run = func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, (*brokenError)(nil) }
		},
		"the search in the error that it gives": func(b *tool.Tool) {
			b.Run = func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, lostError{} }
		},
		"an error of its own kind that is nil": func(b *tool.Tool) {
			b.Run = func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, (*tool.Error)(nil) }
		},
		"its resources": func(b *tool.Tool) { b.Access = func(json.RawMessage) []event.Access { panic("boom") } },
		"its label":     func(b *tool.Tool) { b.Describe = func(json.RawMessage) string { panic("boom") } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad := base()
				breakIt(&bad)
				r := newRig(t).tools(bad).turns(scripted.Turn{ToolCalls: calls("bad", "{}")}, scripted.Turn{Text: "done"})
				run := r.start(t.Context())
				if o := outcome(t, run); !o.OK {
					t.Errorf("outcome %+v", o)
				}
				if res := results(r.whole(run.ID)); len(res) != 1 || !res[0].IsError || res[0].ErrorType != event.ErrorPanic {
					t.Errorf("results %+v", res)
				} else if name == "its end of the goroutine" && !strings.Contains(res[0].Output, "the tool was given up: it ended its goroutine without returning") {
					t.Errorf("output %s", res[0].Output)
				}
			})
		})
	}
}

// brokenError panics where it is nil, as most errors with a receiver do.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

// lostError can be printed, but not looked through.
type lostError struct{}

func (lostError) Error() string { return "lost" }
func (lostError) Unwrap() error { panic("boom") }

type encoderFunc struct {
	llm.Model
	encode func(*llm.Request) (*llm.Encoded, error)
}

func (e encoderFunc) Encode(req *llm.Request) (*llm.Encoded, error) { return e.encode(req) }

func TestWhatGoesWrongInAModelAdapterFailsTheRunWithAnOutcome(t *testing.T) {
	fine := modelFunc(func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) { return said("done"), nil })
	for name, env := range map[string]perform.Env{
		"the call panics": {Model: func(string) (llm.Model, string, error) {
			return modelFunc(func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) { panic("boom") }), "m", nil
		}},
		"its error panics when it is read": {Model: func(string) (llm.Model, string, error) {
			return modelFunc(func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
				return nil, (*brokenError)(nil)
			}), "m", nil
		}},
		"its error is a nil one": {Model: func(string) (llm.Model, string, error) {
			return modelFunc(func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
				return nil, (*llm.Error)(nil)
			}), "m", nil
		}},
		"the resolver's error panics when it is read": {Model: func(string) (llm.Model, string, error) {
			return nil, "", (*brokenError)(nil)
		}},
		"it gives nothing": {Model: func(string) (llm.Model, string, error) {
			return modelFunc(func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) { return nil, nil }), "m", nil
		}},
		"the encoder panics": {Model: func(string) (llm.Model, string, error) {
			return encoderFunc{fine, func(*llm.Request) (*llm.Encoded, error) { panic("boom") }}, "m", nil
		}},
		"the resolver panics": {Model: func(string) (llm.Model, string, error) { panic("boom") }},
		"there is none":       {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t).model(fine)
				r.env.Model = env.Model
				began := time.Now()
				run := r.start(t.Context())
				o := outcome(t, run)
				if o.Status != event.StatusFailed || o.Reason != event.ReasonModelError || o.Error == nil {
					t.Errorf("outcome %+v", o)
				}
				// To ask again would break it again.
				if n := count(r.whole(run.ID), "model.requested"); n != 1 || o.Error.Class != string(llm.ClassInvalid) || time.Since(began) > 0 {
					t.Errorf("it was asked %d times within %s, and failed as %s", n, time.Since(began), o.Error.Class)
				}
			})
		})
	}
}

func TestAnswersThatLackWhatAdaptersShouldGiveAreStillStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := 0
		r := newRig(t).tools(toolFunc("work", func(context.Context) (string, error) { return "worked", nil })).
			model(modelFunc(func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
				if turn++; turn > 1 {
					return &llm.Response{Parts: llm.Parts{llm.Text{Text: "done"}}}, nil
				}
				return &llm.Response{Parts: llm.Parts{
					llm.ToolCall{Name: "work"}, llm.ToolCall{Name: "work", Args: json.RawMessage(`not json`)},
					llm.ToolCall{Name: "work", ArgsText: `nor this`},
				}}, nil
			}))
		run := r.start(t.Context())
		if o := outcome(t, run); o.Reason != event.ReasonFinalAnswer {
			t.Errorf("outcome %+v", o)
		}
		res := results(r.whole(run.ID))
		if res[0].ErrorType != event.ErrorInvalidArgs || res[1].ErrorType != event.ErrorInvalidArgs || res[2].Output != "worked" || !strings.Contains(r.journalText(run.ID), `not json`) {
			t.Errorf("results %+v", res)
		}
	})
}
