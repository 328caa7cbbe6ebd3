package engine_test

import (
	"context"
	"testing"

	"github.com/pawlrun/pawl/engine"
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
	r.Engine = engine.New(store, newMachine, engine.Options{Observers: []engine.Observer{{
		Model: func(ctx context.Context, _ engine.ModelCall, next func(context.Context) (*llm.Response, error)) (*llm.Response, error) {
			resp, err := next(ctx)
			if _, again := next(ctx); again != nil {
				refused++
			}
			return resp, err
		},
		Tool: func(ctx context.Context, _ engine.ToolCall, next func(context.Context) (tool.Result, error)) (tool.Result, error) {
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
