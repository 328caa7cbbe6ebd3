package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
)

// cycles is a model that asks for a tool a number of times, then answers.
func cycles(n int) llm.Model {
	return modelFunc(func(_ context.Context, req *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
		if req.Ordinal == n-1 {
			return said("done"), nil
		}
		return &llm.Response{Parts: llm.Parts{llm.ToolCall{Name: "work"}}, Finish: llm.FinishTool}, nil
	})
}

// A cycle costs one commit for the answer and the intents of its calls, and one
// for the results and the intent of the next call.
func TestACycleCostsTwoCommits(t *testing.T) {
	const n = 20
	store := &watched{Store: memory.New(nil)}
	r := newRig(t, store).model(cycles(n)).tools(toolFunc("work", progress()))
	if o := outcome(t, r.start(t.Context())); o.Cycles != n {
		t.Fatalf("outcome %+v", o)
	}
	// The first intent and the end share no commit with another cycle.
	if got, want := store.count(), 2*n; got != want {
		t.Errorf("%d cycles cost %d commits, want %d", n, got, want)
	}
}

// progress is a tool that gives something new each time; the same again and
// again would be taken for a loop.
func progress() func(context.Context) (string, error) {
	var done atomic.Int64
	return func(context.Context) (string, error) { return fmt.Sprint("worked ", done.Add(1)), nil }
}
