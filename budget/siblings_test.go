package budget_test

import (
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/budget"
)

// Three children against USD 1.25, each call USD 0.50 at its worst: what one of
// them holds the others cannot have, whoever asks first.
func TestThreeChildrenShareOneCap(t *testing.T) {
	limits := budget.Limits{USDPerRun: 1.25}
	call := budget.Call{Input: 100, Output: 400, Price: thousands}
	for _, tt := range []struct {
		name string
		// used is what a call of USD 0.50 really takes, in output tokens.
		used  int64
		calls int
	}{
		{"each uses what was set aside", 400, 2},
		{"each uses less", 100, 4},
		{"each uses next to nothing", 0, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ledger budget.Ledger
			var open []string
			made, atOnce, waited, refused := 0, 0, false, false
			for step := 0; !refused && step < 1000; step++ {
				spent := budget.Spent{USD: ledger.Spent().USD}
				a, refusal := limits.Admit(spent, ledger.Held(), call)
				switch {
				case refusal.Setting == "":
					id := fmt.Sprintf("child %d, call %d", step%3, step)
					ledger = must(t)(ledger.Reserve(budget.Reservation{ID: id, Amount: a}))
					open = append(open, id)
					made, atOnce = made+1, max(atOnce, len(open))
				case refusal.Wait || len(open) > 0:
					waited = waited || refusal.Wait
					used := thousandth(call.Input, tt.used)
					ledger = must(t)(ledger.Commit(open[0], used))
					open = open[1:]
				default:
					refused = true
				}
				if total := ledger.Spent().USD + ledger.Held().USD; total > limits.USDPerRun+1e-9 {
					t.Fatalf("step %d: USD %v of %v", step, total, limits.USDPerRun)
				}
			}
			if made != tt.calls || atOnce != 2 || !waited || !refused {
				t.Errorf("%d calls, %d at once, waited %t, refused %t; want %d calls, two at once, and a wait", made, atOnce, waited, refused, tt.calls)
			}
		})
	}
}

// thousandth is what so many tokens take at a dollar a thousand.
func thousandth(input, output int64) budget.Amount {
	return budget.Amount{USD: float64(input+output) / 1000, Input: input, Output: output}
}
