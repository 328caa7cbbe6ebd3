package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

type handOn = func(context.Context) (tool.Result, error)

// observed gives a rig an engine whose calls are observed.
func (r *rig) observed(wrap func(context.Context, perform.ToolCall, handOn) (tool.Result, error)) *rig {
	r.t.Helper()
	r.Engine = engine.New(r.store, newMachine, engine.Options{Observers: []perform.Observer{{Tool: wrap}}})
	return r
}

func refuses(context.Context, perform.ToolCall, handOn) (tool.Result, error) {
	return tool.Result{}, errors.New("not today")
}

func panics(context.Context, perform.ToolCall, handOn) (tool.Result, error) { panic("boom") }

// ended says how each child of a run that has ended left, and holds that none of
// them is open.
func (r *rig) ended(id string) []event.Outcome {
	r.t.Helper()
	var outcomes []event.Outcome
	begun := 0
	for _, e := range r.whole(id) {
		switch d := e.Data.(type) {
		case event.ChildStarted:
			begun++
		case event.ChildFinished:
			outcomes = append(outcomes, d.Outcome)
			row, err := r.store.Run(context.Background(), d.Child)
			if err != nil && !errors.Is(err, journal.ErrNotFound) || err == nil && row.State != journal.Ended {
				r.t.Errorf("child %s: %+v, %v", d.Child, row, err)
			}
		}
	}
	if begun != len(outcomes) {
		r.t.Errorf("%d children were begun, and %d ended", begun, len(outcomes))
	}
	return outcomes
}

// An observer is to hand every call on. What one does that does not is the
// result of a child's call, as it is of a tool's, and the child does not stay.
func TestAChildsCallThatAnObserverKeepsFails(t *testing.T) {
	for name, c := range map[string]struct {
		wrap func(context.Context, perform.ToolCall, handOn) (tool.Result, error)
		kind event.ErrorType
		says string
	}{
		"with an error": {refuses, event.ErrorTool, "not today"},
		"by a panic":    {panics, event.ErrorPanic, "panicked: boom"},
		"without a word": {func(context.Context, perform.ToolCall, handOn) (tool.Result, error) {
			return tool.Result{Output: "made up"}, nil
		}, event.ErrorTool, "an observer did not hand the call on"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				child := newRig(t).turns(scripted.Turn{Text: "never"})
				r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).
					offers("ask", child).observed(c.wrap)
				defer r.Close()
				run := r.start(t.Context())
				if o := outcome(t, run); !o.OK || o.FinalOutput != "done" {
					t.Errorf("%+v", o)
				}
				if got := results(r.whole(run.ID)); len(got) != 1 || !got[0].IsError || got[0].ErrorType != c.kind || !strings.Contains(got[0].Output, c.says) {
					t.Errorf("%+v", got)
				}
				if got := r.ended(run.ID); len(got) != 1 || got[0].Status != event.StatusCancelled {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// What the child did counts, whatever an observer does afterwards, or when it
// leaves before the child.
func TestAChildThatAnObserverHandedOnCounts(t *testing.T) {
	for name, wrap := range map[string]func(context.Context, perform.ToolCall, handOn) (tool.Result, error){
		"a panic": func(ctx context.Context, _ perform.ToolCall, next handOn) (tool.Result, error) {
			_, _ = next(ctx)
			panic("boom")
		},
		"an early return": func(ctx context.Context, _ perform.ToolCall, next handOn) (tool.Result, error) {
			begun := make(chan struct{})
			go func() { close(begun); _, _ = next(ctx) }()
			<-begun
			synctest.Wait() // the child is at work
			return tool.Result{}, errors.New("too slow")
		},
		"a second call": func(ctx context.Context, _ perform.ToolCall, next handOn) (tool.Result, error) {
			_, _ = next(ctx)
			return next(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				child := newRig(t).model(takes(time.Minute))
				r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "so be it"}).
					offers("ask", child).observed(wrap)
				defer r.Close()
				run := r.start(t.Context())
				outcome(t, run)
				if got := results(r.whole(run.ID)); len(got) != 1 || got[0].IsError || got[0].Output != "done" {
					t.Errorf("%+v", got)
				}
				r.ended(run.ID)
			})
		})
	}
}

// A cancel ends a child's call that an observer holds, and a child that is
// parked, whatever the observer says about it.
func TestACancelEndsAChildWhoseCallAnObserverKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).turns(scripted.Turn{Text: "never"})
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "never"}).
			offers("ask", child).observed(func(ctx context.Context, _ perform.ToolCall, _ handOn) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		})
		defer r.Close()
		run := r.start(t.Context())
		synctest.Wait()
		r.send(journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann"})
		if o := outcome(t, run); o.Status != event.StatusCancelled {
			t.Errorf("%+v", o)
		}
		if got := r.ended(run.ID); len(got) != 1 || got[0].Status != event.StatusCancelled {
			t.Errorf("%+v", got)
		}
	})
}

func TestACancelEndsAParkedChildDespiteAnObserver(t *testing.T) {
	for name, keeps := range map[string]func(context.Context, perform.ToolCall, handOn) (tool.Result, error){
		"a refusal": refuses, "a panic": panics,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				child := newRig(t).tools(toolFunc("send", well)).gate("send").
					turns(scripted.Turn{ToolCalls: calls("send", `{}`)}, scripted.Turn{Text: "never"})
				child.env.Tools = concurrent(t, child.env.Tools)
				var kept atomic.Int32
				r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task, "think", task)}, scripted.Turn{Text: "never"}).
					offers("ask", child).offers("think", newRig(t, child.store).model(takes(time.Hour)))
				r.cfg.Dispatch = agent.ParallelAll
				r.observed(func(ctx context.Context, c perform.ToolCall, next handOn) (tool.Result, error) {
					if c.Tool == "ask" && kept.Add(1) > 1 {
						return keeps(ctx, c, next)
					}
					return next(ctx)
				})
				defer r.Close()
				run := r.start(t.Context())
				synctest.Wait()
				if n := count(r.journal(run.ID), "child.parked"); n != 1 {
					t.Fatalf("%d children parked", n)
				}
				r.send(journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann"})
				if o := outcome(t, run); o.Status != event.StatusCancelled || kept.Load() != 2 {
					t.Errorf("seen %d times; %+v", kept.Load(), o)
				}
				if got := r.ended(run.ID); len(got) != 2 || got[0].Status != event.StatusCancelled || got[1].Status != event.StatusCancelled {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// An interruption leaves a child to be taken up, also where an observer gives
// its call up by itself.
func TestAnInterruptionKeepsAChildWhoseCallAnObserverHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).turns(scripted.Turn{Text: "42"})
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
		o := r.other()
		r.observed(func(ctx context.Context, _ perform.ToolCall, _ handOn) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		})
		defer r.Close()
		run := r.start(t.Context())
		synctest.Wait()
		run.Interrupt()
		parkedAs(t, run, event.ParkInterrupted)
		again := o.resume(run.ID)
		if out := outcome(t, again); !out.OK {
			t.Errorf("%+v", out)
		}
		if got := results(o.whole(run.ID)); len(got) != 1 || got[0].Output != "42" {
			t.Errorf("%+v", got)
		}
		o.ended(run.ID)
	})
}
