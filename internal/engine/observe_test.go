package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// An observer that hands a call on twice would pay twice, or send twice.
func TestAnObserverHandsACallOnOnce(t *testing.T) {
	store := memory.New(nil)
	r := newRig(t, store)
	var refused int
	r.Engine = engine.New(store, newMachine, engine.Options{Observers: []perform.Observer{{
		Model: func(ctx context.Context, _ perform.ModelCall, next func(context.Context) (*llm.Response, error)) (*llm.Response, error) {
			resp, err := next(ctx)
			if _, again := next(ctx); again != nil {
				refused++
			}
			return resp, err
		},
		Tool: func(ctx context.Context, _ perform.ToolCall, next func(context.Context) (tool.Result, error)) (tool.Result, error) {
			result, err := next(ctx)
			if _, again := next(ctx); again != nil {
				refused++
			}
			return result, err
		},
	}}})
	defer r.Engine.Close()
	sent := 0
	r.tools(toolFunc("send", func(context.Context) (string, error) { sent++; return "sent", nil })).
		turns(scripted.Turn{ToolCalls: calls("send", `{}`)}, scripted.Turn{Text: "done"})
	if o := outcome(t, r.start(t.Context())); o.FinalOutput != "done" || o.Cycles != 2 || sent != 1 || refused != 3 {
		t.Errorf("%q after %d cycles, sent %d times, refused %d times", o.FinalOutput, o.Cycles, sent, refused)
	}
}

// A span closes when its observer returns, and what the call used is not the
// run's before.
//
// rows: ALF-11
func TestWhatACallUsedIsTheRunsOnceItsObserversHaveReturned(t *testing.T) {
	store := memory.New(nil)
	r := newRig(t, store)
	var before []int64
	r.Engine = engine.New(store, newMachine, engine.Options{Observers: []perform.Observer{{
		Model: func(ctx context.Context, c perform.ModelCall, next func(context.Context) (*llm.Response, error)) (*llm.Response, error) {
			resp, err := next(ctx)
			before = append(before, r.spent(c.Run).Input)
			return resp, err
		},
	}}})
	defer r.Engine.Close()
	r.tools(toolFunc("look", func(context.Context) (string, error) { return "seen", nil })).turns(
		scripted.Turn{ToolCalls: calls("look", `{}`), Usage: &llm.Usage{Input: 10, Output: 1}},
		scripted.Turn{Text: "done", Usage: &llm.Usage{Input: 20, Output: 1}})
	run := r.start(t.Context())
	o := outcome(t, run)
	if !slices.Equal(before, []int64{0, 10}) || r.spent(run.ID).Input != 30 || o.Usage.Input != 30 || o.Cost == nil {
		t.Errorf("%d tokens while the spans were open, then %d; the outcome has %+v and the cost %v", before, r.spent(run.ID).Input, o.Usage, o.Cost)
	}
}
