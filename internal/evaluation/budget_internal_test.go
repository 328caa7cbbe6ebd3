package evaluation

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/llm"
)

func TestACallWaitsForTheReservationsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := false
		b := NewBudget(1.5, func(string) *llm.Price { return &llm.Price{Input: 1} })
		b.begin(0.2, func() { stopped = true })
		most := llm.Usage{Input: 1_000_000}
		first, err := b.Admit(t.Context(), perform.ModelCall{}, most)
		if err != nil {
			t.Fatal(err)
		}
		var second perform.Paid
		go func() { second, err = b.Admit(t.Context(), perform.ModelCall{}, most) }()
		synctest.Wait()
		if second != nil || err != nil || stopped {
			t.Fatalf("while the first call is open: %v, stopped %v", err, stopped)
		}
		first(llm.Usage{}, llm.Cost{USD: 0.1})
		synctest.Wait()
		if second == nil || err != nil {
			t.Fatalf("after the first call cost little: %v", err)
		}
		second(llm.Usage{}, llm.Cost{USD: 0.5})

		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, err = b.Admit(ctx, perform.ModelCall{}, most) }()
		synctest.Wait()
		if !stopped || !b.Exhausted() {
			t.Error("a call that can never be paid does not stop the evaluation")
		}
		cancel()
		synctest.Wait()
		if refused, ok := errors.AsType[*llm.Error](err); !ok || refused.Class != llm.ClassInterrupted {
			t.Errorf("the call ended with %v", err)
		}
	})
}
