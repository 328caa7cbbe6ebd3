package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// failedCalls are the failed calls of a run.
func failedCalls(events []event.Event) []event.ModelAttemptFailed {
	var failed []event.ModelAttemptFailed
	for _, e := range events {
		if d, ok := e.Data.(event.ModelAttemptFailed); ok {
			failed = append(failed, d)
		}
	}
	return failed
}

// A call that is not whole is in no answer, and was written all the same: a model
// that is cut off amid a long file has said little else.
func TestAStreamThatBreaksWithinACallIsChargedByAllThatCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := false
		r := newRig(t).model(modelFunc(func(_ context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
			if broken {
				return said("done"), nil
			}
			broken = true
			emit(llm.Delta{Kind: llm.DeltaText, Text: "I write."})
			emit(llm.Delta{Kind: llm.DeltaToolCall, Index: 1, Tool: "fs.write"})
			for range 10 {
				emit(llm.Delta{Kind: llm.DeltaToolCall, Index: 1, Text: strings.Repeat("x", 200)})
			}
			partial := said("I write.")
			partial.Usage.Estimated = true
			return partial, &llm.Error{Class: llm.ClassNetwork, Message: "reset"}
		})).priced(0, 1000)
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK {
			t.Fatalf("%+v", o)
		}
		const came = len("I write.") + len("fs.write") + 10*200
		if f := failedCalls(r.whole(run.ID)); len(f) != 1 || f[0].Usage.Output != int64(came) || !near(f[0].Cost.USD, float64(came)/1000) {
			t.Errorf("charged %+v for %d bytes", f, came)
		}
	})
}

// Nothing is charged for what the provider declined, also where the run was
// stopped while it said so.
func TestACallThatWasDeclinedAsTheRunStoppedCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).model(modelFunc(func(ctx context.Context, _ *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
			<-ctx.Done()
			return nil, &llm.Error{Class: llm.ClassThrottled, Status: 429, Message: "slow down"}
		})).priced(1000, 1000)
		ctx, stop := context.WithCancelCause(t.Context())
		run := r.start(ctx)
		synctest.Wait()
		stop(errors.New("enough"))
		if o := outcome(t, run); o.Status != event.StatusCancelled || o.Cost.USD != 0 {
			t.Errorf("%s for USD %v", o.Status, o.Cost.USD)
		}
		if f := failedCalls(r.whole(run.ID)); len(f) != 1 || f[0].Class != llm.ClassInterrupted || f[0].Usage != (llm.Usage{}) {
			t.Errorf("charged %+v", f)
		}
	})
}
